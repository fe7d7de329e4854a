"""``--out FILE``: the whole file or none of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from batchmill.cli import screen
from batchmill.cli.errors import CommandError, UsageError

STDOUT: Final = "-"


def check_out(name: str) -> None:
    """Raise ``UsageError`` for a place that can't be written to, before anything is fetched."""
    path = Path(name).resolve()
    if name == STDOUT or _is_special(path):
        return
    if path.is_dir():
        raise UsageError(f"--out: {name} is a directory")
    if not path.parent.is_dir():
        raise UsageError(f"--out: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"--out: no permission to write in {path.parent}")


def write_lines(name: str, values: Iterable[Any]) -> None:
    """JSON Lines into the file, written beside it and then renamed; ``-`` is stdout."""
    if name == STDOUT:
        screen.print_json_lines(values)
        return
    path = Path(name).resolve()
    try:
        if _is_special(path):
            _write(path, values)
        else:
            _write_and_rename(path, values)
    except OSError as error:
        raise CommandError(f"can't write {name}: {error.strerror}") from error


def _is_special(path: Path) -> bool:
    """A pipe, a device: nothing to be renamed over."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _write_and_rename(path: Path, values: Iterable[Any]) -> None:
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        _write(beside, values)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _write(path: Path, values: Iterable[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for value in values:
            stream.write(screen.json_text(value) + "\n")
