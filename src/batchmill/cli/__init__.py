"""The ``batchmill`` command; it needs the extra ``cli`` (typer, rich, httpx)."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Final

_NEEDED: Final = ("typer", "rich", "httpx")
_INTERRUPTED: Final = 130


def main() -> None:
    """Run the command. A Ctrl-C while it still loads exits 130, as one does later."""
    try:
        _run()
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


def _run() -> None:
    """Where the extra is missing, say in one line how to get it, and exit 2."""
    _open_what_is_closed()
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"batchmill: the command needs {', '.join(missing)}: run pip install 'batchmill[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from batchmill.cli.app import app

    _print_what_can_be_printed()
    app(prog_name="batchmill")


def _open_what_is_closed() -> None:
    """A stream that was closed (``>&-``) reads as empty, and takes what nobody wants."""
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            mode = "r" if flags == os.O_RDONLY else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _print_what_can_be_printed() -> None:
    """Let a character that the terminal can't show become a question mark, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
