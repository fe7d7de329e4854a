"""How the demo's state looks: one renderable for a frame, made of nothing but the frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from batchmill.cli.demo.cast import CAST
from batchmill.cli.demo.journal import Turn
from batchmill.cli.demo.scenario import Frame, JobView
from batchmill.cli.screen import STYLES, cell
from batchmill.cli.values import bytes_text
from batchmill.records import BatchTarget, TargetStatus

EVENTS: Final = 8
_COLOURS: Final = {person.name: person.colour for person in CAST}
_LETTERS: Final = {person.name: person.letter for person in CAST}
_SIGNS: Final = {
    TargetStatus.DONE: ("■", "green"),
    TargetStatus.FAILED: ("✗", "bold red"),
    TargetStatus.RUNNING: ("▶", "bold yellow"),
    TargetStatus.PENDING: ("·", "bright_black"),
}
BUSY: Final = ("↻", "bold yellow")
_LEGEND: Final = (
    (*_SIGNS[TargetStatus.DONE], "done"),
    (*_SIGNS[TargetStatus.RUNNING], "in flight"),
    (*BUSY, "busy, tried again"),
    (*_SIGNS[TargetStatus.FAILED], "failed"),
    (*_SIGNS[TargetStatus.PENDING], "pending"),
)


TITLE: Final = Text.assemble(
    ("batchmill", "bold"),
    " · three callers, a job each; one worker takes their targets in turns",
)


def picture(frame: Frame) -> RenderableType:
    """The whole screen."""
    return Group(
        _framed("jobs", _jobs(frame)),
        _framed("turns", _turns(frame.turns)),
        _framed("what happens", _events(frame)),
        _legend(),
    )


def _framed(title: str, body: RenderableType) -> Panel:
    return Panel(
        body,
        title=f"[bold]{title}[/]",
        title_align="left",
        border_style="bright_black",
        box=box.ROUNDED,
        padding=(0, 1),
    )


def _jobs(frame: Frame) -> Table:
    """A row a job: who, how far, and what is being fetched; and a row for all."""
    grid = Table.grid(padding=(0, 2), expand=True)
    for column in _COLUMNS:
        grid.add_column(no_wrap=True, justify="right" if column in _RIGHT else "left")
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    grid.add_row(*(Text(column, "dim") for column in (*_COLUMNS, "in flight")))
    for view in frame.jobs:
        grid.add_row(*_job_row(view, frame))
    finished = sum(view.job.targets_done for view in frame.jobs)
    total = sum(view.job.targets_total for view in frame.jobs)
    grid.add_row("all", "", "", f"{finished}/{total}", bytes_text(frame.nbytes), style="bold")
    return grid


_COLUMNS: Final = ("caller", "status", "targets", "finished", "stored")
_RIGHT: Final = {"finished", "stored"}


def _job_row(view: JobView, frame: Frame) -> Iterable[Text]:
    job, running = view.job, view.running
    return (
        Text(view.person.name, f"bold {view.person.colour}"),
        Text(f"{job.status:<9}", STYLES[job.status]),
        Text(" ").join(Text(*sign) for sign in signs(view, frame)),
        Text(f"{job.targets_done}/{job.targets_total}"),
        Text(bytes_text(job.nbytes)),
        cell(path_of(running.url), "yellow") if running else Text(""),
    )


def signs(view: JobView, frame: Frame) -> list[tuple[str, str]]:
    """A sign and its style for each target of a job, in order."""
    busy = {(turn.job_id, turn.idx) for turn in frame.turns if turn.busy}
    return [_sign(row, busy=(row.job_id, row.idx) in busy) for row in view.targets]


def _sign(row: BatchTarget, *, busy: bool) -> tuple[str, str]:
    return BUSY if busy and row.status is TargetStatus.PENDING else _SIGNS[row.status]


def path_of(url: str) -> str:
    """A document's name in the demo's server."""
    return url.split("/", 3)[-1]


def _turns(turns: Iterable[Turn]) -> Text:
    """Each start of a target, in order: the caller's letter and the target's number."""
    return Text(" ").join(_turn(turn) for turn in turns)


def _turn(turn: Turn) -> Text:
    text = Text(f"{_LETTERS[turn.caller]}{turn.idx}", _COLOURS[turn.caller])
    if turn.busy:
        text.append(BUSY[0], BUSY[1])
    return text


def _events(frame: Frame) -> Table:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True, width=4)
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for caller, text in frame.events[-EVENTS:]:
        grid.add_row(Text(caller, f"bold {_COLOURS[caller]}"), cell(text))
    for _ in range(EVENTS - len(frame.events)):
        grid.add_row("", "")  # the frame keeps its height
    return grid


def _legend() -> Text:
    parts = [Text.assemble((sign, style), (f" {name}", "dim")) for sign, style, name in _LEGEND]
    return Text("  ") + Text("   ").join(parts)
