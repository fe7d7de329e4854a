"""How a run's progress is shown: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)

from batchmill.cli.running import Progress
from batchmill.cli.screen import can_redraw
from batchmill.cli.values import plural

_LINE_EVERY: Final = 5.0


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Progress], None]]:
    """What to call with each new state of the run."""
    if not can_redraw(console):
        yield Lines(console)
        return
    with _bar(console) as bar:
        task = bar.add_task("fetching", total=None)
        yield lambda now: bar.update(
            task, completed=now.finished, total=now.total, description=_doing(now)
        )


def _bar(console: Console) -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        expand=False,
    )


def _doing(now: Progress) -> str:
    return f"{plural(now.busy, 'target')} busy, tried again later" if now.busy else "fetching"


class Lines:
    """A plain line whenever five seconds have passed and something has happened."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._last = clock()
        self._said = (0, 0)

    def __call__(self, now: Progress) -> None:
        """Say where it stands, if it is time to."""
        state = (now.finished, now.busy)
        if state == self._said or self._clock() - self._last < _LINE_EVERY:
            return
        self._last, self._said = self._clock(), state
        busy = f"; {_doing(now)}" if now.busy else ""
        self._console.print(f"{now.finished:,} of {plural(now.total, 'target')} finished{busy}")
