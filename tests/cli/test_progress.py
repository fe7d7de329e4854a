from __future__ import annotations

import io

from rich.console import Console

from batchmill.cli.progress import Lines, shown
from batchmill.cli.running import Progress


def _console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=terminal)


def test_where_nobody_looks_a_line_comes_now_and_then():
    """A line at most every five seconds, and none while nothing happens."""
    console, now = _console(terminal=False), [0.0]
    lines = Lines(console, clock=lambda: now[0])
    for second in range(20):
        now[0] = float(second)
        lines(Progress(finished=min(second, 10), total=12, live=True))
    assert console.file.getvalue().splitlines() == [
        "5 of 12 targets finished",
        "10 of 12 targets finished",
    ]


def test_a_busy_target_is_told():
    """When nothing goes on because a target is busy, the line says so."""
    console, now = _console(terminal=False), [0.0]
    lines = Lines(console, clock=lambda: now[0])
    now[0] = 6.0
    lines(Progress(finished=0, total=12, live=True, busy=1))
    assert console.file.getvalue() == (
        "0 of 12 targets finished; 1 target busy, tried again later\n"
    )


def test_a_terminal_gets_a_bar():
    """On a terminal a bar is drawn, and taken away at the end."""
    console = _console(terminal=True)
    with shown(console) as show:
        show(Progress(finished=3, total=12, live=True))
    drawn = console.file.getvalue()
    assert "3/12" in drawn
    assert drawn.endswith("\x1b[2K")
