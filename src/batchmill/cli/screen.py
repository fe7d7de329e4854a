"""What commands print with: consoles, colours, safe text, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import IO, Any, Final

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

WIDE: Final = 120
"""Columns where nobody looks: in a pipe an id must not be cut."""

_ROOM: Final = 1000
"""Columns enough for any table of ids and numbers."""

STYLES: Final = {
    "queued": "cyan",
    "running": "bold yellow",
    "pending": "dim",
    "done": "green",
    "partial": "magenta",
    "failed": "bold red",
    "cancelled": "bright_black",
}


def out() -> Console:
    """The console for what the command was asked for."""
    return _console(sys.stdout)


def err() -> Console:
    """The console for what happens meanwhile: progress, warnings."""
    return _console(sys.stderr)


def _console(stream: IO[str]) -> Console:
    seen = getattr(stream, "isatty", lambda: False)()
    width = None if seen or os.environ.get("COLUMNS") else WIDE
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False)


def can_redraw(console: Console) -> bool:
    """True where what was printed can be printed over: a terminal, and not a dumb one."""
    return console.is_terminal and not console.is_dumb_terminal


def plain(value: str) -> str:
    """The text on one line, with nothing that a terminal would obey: stored text may hold any."""
    if value.isprintable():
        return value
    return "".join(_shown(char) for char in value)


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return " " if char in "\n\r\t\u2028\u2029" else "\N{REPLACEMENT CHARACTER}"


def cell(value: str, style: str = "") -> Text:
    """A table's cell of stored text: no markup, no control characters."""
    return Text(plain(value), style=style)


def status_text(status: str) -> Text:
    """A job's or target's status in its colour."""
    return Text(status, style=STYLES.get(status, ""))


def table(*columns: str) -> Table:
    """A table with the look that all of them share; ``>name`` aligns a column to the right.

    ``!name`` is a column that is never cut, for ids.
    """
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in columns:
        name = column.lstrip(">!")
        made.add_column(
            name,
            justify="right" if column.startswith(">") else "left",
            no_wrap=column.startswith((">", "!")),
            overflow="fold",
            header_style="bold",
        )
    return made


def print_whole(console: Console, made: Table) -> None:
    """Print a table so that nothing of it is cut, wider than the terminal if need be."""
    needed = Measurement.get(console, console.options.update(max_width=_ROOM), made).minimum
    if needed > console.width:
        made.width = needed
    console.print(made, crop=False)


def json_text(value: Any) -> str:
    """One line of JSON, keys in the order given; always valid UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, escaped in what is stored
        return json.dumps(value, separators=(", ", ": "))
    return text


def print_json(value: Any) -> None:
    """One JSON value on stdout, on a line of its own."""
    print_json_lines([value])


def print_json_lines(values: Iterable[Any]) -> None:
    """JSON Lines on stdout; escaped where stdout isn't UTF-8."""
    utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    for value in values:
        sys.stdout.write((json_text(value) if utf8 else json.dumps(value)) + "\n")
    sys.stdout.flush()
