"""``batchmill demo``: the story, its screen, and what is left at the end."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from batchmill.cli import screen
from batchmill.cli.database import Found, Place, again, look_at, name_of, open_store
from batchmill.cli.demo import ending
from batchmill.cli.demo.cast import ADA
from batchmill.cli.demo.documents import package_documents
from batchmill.cli.demo.journal import Event, Journal
from batchmill.cli.demo.picture import EVENTS, TITLE, picture, signs
from batchmill.cli.demo.scenario import Frame, Scenario
from batchmill.cli.demo.server import DemoServer
from batchmill.cli.demo.svg import save_svg
from batchmill.cli.errors import INTERRUPTED, UsageError
from batchmill.cli.fetchers import WebFetcher
from batchmill.cli.interrupts import Interrupts

PACE: Final = 0.6
_FRAMES_EVERY: Final = 0.1
_PATIENCE: Final = 2.0

Checkpoint = Callable[[str], object]


def nothing(_told: object) -> None:
    """What is called where nobody wants to know."""


@dataclass(slots=True)
class Show:
    """Where the demo is shown, and the frame that makes its picture."""

    console: Console
    best: Frame | None = None
    _best_worth: tuple[int, int] = (-1, 0)

    def keep_best(self, frame: Frame) -> None:
        """Keep the frame with the most to see: kinds of signs, then what has happened so far."""
        seen = {sign for view in frame.jobs for sign, _ in signs(view, frame)}
        worth = (len(seen), min(len(frame.events), EVENTS))
        if worth > self._best_worth:
            self.best, self._best_worth = frame, worth


def demo(
    *,
    db: Annotated[
        str | None,
        typer.Option(
            "--db",
            metavar="URL",
            help="Keep the database in this SQLite file, which must be missing or empty. "
            "Otherwise it is a temporary one.",
        ),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Save a picture of the screen.")
    ] = None,
    pace: Annotated[
        float, typer.Option(min=0.0, max=60.0, hidden=True, help="Seconds for a document.")
    ] = PACE,
) -> None:
    """See it work: three callers, one worker, a web server with moods; half a minute."""
    show = Show(screen.out())
    with _database(db) as url, Interrupts(signal.SIGINT) as interrupts:
        finished = play(url, show, interrupts, pace=pace, svg=svg)
        if finished and db is not None:
            show.console.print(
                f"\nAda's job is still there: {again('jobs', Place(db))}", soft_wrap=True
            )
    if not finished:
        raise typer.Exit(INTERRUPTED)


def play(
    url: str,
    show: Show,
    interrupts: Interrupts,
    *,
    pace: float = PACE,
    svg: Path | None = None,
    checkpoint: Checkpoint = nothing,
) -> bool:
    """Play it all; False when interrupted. ``checkpoint`` is called when a part has ended."""
    journal = Journal(_teller(show.console))
    with (
        open_store(Place(url), create=True) as store,
        DemoServer(package_documents(), pace) as server,
        WebFetcher() as fetcher,
    ):
        scenario = Scenario(store, fetcher, journal, server.address)
        show.console.print(TITLE)
        last = _drain(scenario, show, interrupts)
        if interrupts.asked:
            return False
        checkpoint("drained")
        _finish(scenario, show.console, last, checkpoint)
        if svg is not None and show.best is not None:
            save_svg(svg, show.best)
        return True


def _drain(scenario: Scenario, show: Show, interrupts: Interrupts) -> Frame:
    """From the first submit to the last stored target; the last frame."""
    scenario.submit_all()
    try:
        with _screen(show.console) as update:
            scenario.runner.start()
            while True:
                frame = scenario.frame()
                show.keep_best(frame)
                update(frame)
                if not frame.live or interrupts.wait(_FRAMES_EVERY):
                    return frame
    finally:
        scenario.runner.close(timeout=_PATIENCE)


@contextmanager
def _screen(console: Console) -> Iterator[Callable[[Frame], None]]:
    """Live on a terminal; elsewhere the events alone, and the last frame once."""
    if screen.can_redraw(console):
        with Live(console=console, auto_refresh=False) as live:
            yield lambda frame: live.update(picture(frame), refresh=True)
        return
    frames: list[Frame] = []
    yield lambda frame: frames.__setitem__(slice(None), [frame])
    for frame in frames:
        console.print(picture(frame))


def _teller(console: Console) -> Callable[[Event], object]:
    """Where there is no live screen, events are told as they come."""
    if screen.can_redraw(console):
        return nothing
    return lambda event: console.print(f"{event.caller}: {event.text}", soft_wrap=True)


def _finish(scenario: Scenario, console: Console, last: Frame, checkpoint: Checkpoint) -> None:
    ending.print_results(console, ADA, scenario.results(ADA))
    ending.print_totals(console, last)
    ending.print_eviction(console, *scenario.evict())
    checkpoint("evicted")
    ending.print_sweep(console, scenario.sweep())
    checkpoint("swept")


@contextmanager
def _database(db: str | None) -> Iterator[str]:
    """The user's file, which must hold nothing yet, or one that is gone afterwards."""
    if db is None:
        with tempfile.TemporaryDirectory(prefix="batchmill-demo-") as folder:
            yield f"sqlite:///{folder}/demo.db"
        return
    if look_at(Place(db)) in {Found.OURS, Found.OTHER}:
        raise UsageError(
            f"--db: {name_of(Place(db))} holds tables already, and the demo removes jobs: "
            "name one that is empty, or a file that isn't there"
        )
    yield db
