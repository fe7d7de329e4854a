"""The application's logger, as the runner uses it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, Final

_CALLER: Final = 3
"""How many frames up a record's file and line are: who called ``info``, say."""


class Log:
    """Logs to the application's logger; a handler or filter that raises changes nothing.

    Otherwise it would end the thread that came by, a worker say (spec/seed-001, rule 8).
    """

    def __init__(self, logger: logging.Logger | logging.LoggerAdapter[Any]) -> None:
        self._logger = logger

    def info(self, message: str, *args: object) -> None:
        """What happens, job by job."""
        self._log(logging.INFO, message, args)

    def warning(self, message: str, *args: object) -> None:
        """What went wrong and is dealt with."""
        self._log(logging.WARNING, message, args)

    def error(self, message: str, *args: object) -> None:
        """What shows a mistake in the application's code."""
        self._log(logging.ERROR, message, args)

    def _log(self, level: int, message: str, args: tuple[object, ...]) -> None:
        with suppress(Exception):
            self._logger.log(level, message, *args, stacklevel=_CALLER)
