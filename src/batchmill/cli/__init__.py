"""The ``batchmill`` command; it needs the extra ``cli`` (typer, rich, httpx)."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

_NEEDED: Final = ("typer", "rich", "httpx")


def main() -> None:
    """Run the command; where the extra is missing, say in one line how to get it, and exit 2."""
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


def _print_what_can_be_printed() -> None:
    """Let a character that the terminal can't show become a question mark, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
