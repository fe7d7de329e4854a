"""Where a command's log lines go; the library itself configures no logging."""

from __future__ import annotations

import logging

from rich.console import Console
from rich.text import Text

from batchmill.cli.screen import plain


class _ConsoleHandler(logging.Handler):
    """Prints through a console, so that a progress bar isn't torn."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.levelname.lower()}: {plain(record.getMessage())}"
        self._console.print(Text(text, style="dim"), soft_wrap=True)


def warnings_to(console: Console) -> logging.Logger:
    """A logger of this command's own that prints warnings and worse."""
    return _logger(console, logging.WARNING)


def everything_to(console: Console) -> logging.Logger:
    """A logger of this command's own that prints all but debugging."""
    return _logger(console, logging.INFO)


def _logger(console: Console, level: int) -> logging.Logger:
    """Not registered by name: nothing that another part of the process does reaches it."""
    logger = logging.Logger("batchmill.cli", level)  # noqa: LOG001 - see above
    logger.addHandler(_ConsoleHandler(console))
    return logger
