"""The funnel: whatever goes wrong in a command becomes one line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from batchmill.cli.screen import plain
from batchmill.errors import BatchmillError, InvalidInput

FAILED: Final = 1
"""Something didn't work out: an unknown id, a database that isn't there, a failed target."""
USAGE: Final = 2
"""The command was called in a way that can't work."""
INTERRUPTED: Final = 130
"""Ended by Ctrl-C, as shells number it."""

TRACEBACK_VARIABLE: Final = "BATCHMILL_TRACEBACK"


class CommandError(BatchmillError):
    """A command can't go on; the message is the one line that the user sees."""

    exit_code = FAILED


class UsageError(CommandError):
    """The command was called in a way that can't work: a wrong file, a wrong name."""

    exit_code = USAGE


class Funnel(TyperGroup):
    """The group of all commands: no exception of theirs gets past it as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a ``BatchmillError`` is a line, anything unforeseen one too."""
        try:
            return super().invoke(ctx)
        except BatchmillError as error:
            _end(str(error), exit_code_of(error))
        except KeyboardInterrupt:
            _end("interrupted", INTERRUPTED)
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(FAILED) from None
        except Exception as error:
            if _passes_through(error):
                raise
            _end(_unforeseen(error), FAILED)


def exit_code_of(error: BatchmillError) -> int:
    """2 for what the user has to write differently, 1 for the rest."""
    if isinstance(error, CommandError):
        return error.exit_code
    return USAGE if isinstance(error, InvalidInput) else FAILED


def report(message: str) -> None:
    """One line on stderr, with nothing in it that moves a terminal's cursor."""
    print(f"batchmill: {plain(message)}", file=sys.stderr, flush=True)


def _end(message: str, exit_code: int) -> NoReturn:
    report(message)
    raise typer.Exit(exit_code) from None


def _passes_through(error: Exception) -> bool:
    """True for what typer handles itself (usage errors, exits), and when a trace is asked for."""
    own = type(error).__module__.split(".")[0] in {"typer", "click"}
    return own or bool(os.environ.get(TRACEBACK_VARIABLE))


def _unforeseen(error: Exception) -> str:
    """An error that nobody thought of: its class says enough, its text may hold anything.

    What the system refused, a write to a full disk say, it says in words of its own.
    """
    if isinstance(error, OSError) and error.strerror:
        return f"the system refused: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return (
        f"internal error ({type(error).__name__}); "
        f"set {TRACEBACK_VARIABLE}=1 and run again to see where"
    )


def _silence_stdout() -> None:
    """The reader of a pipe has gone (``| head``): don't complain again while flushing at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
