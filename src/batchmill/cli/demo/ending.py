"""What the demo prints at its end: the results in order, the totals, and the cleaning up."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from batchmill.cli.demo.cast import ADA, Person
from batchmill.cli.demo.picture import path_of
from batchmill.cli.demo.scenario import Frame, JobView, Removal
from batchmill.cli.screen import cell, status_text, table
from batchmill.cli.shapes import Entry
from batchmill.cli.tables import beginning, trouble
from batchmill.cli.values import bytes_text, plural
from batchmill.records import TargetStatus


def print_results(console: Console, person: Person, entries: list[Entry]) -> None:
    """A person's results: done ones with their beginning, failed ones with error and hint."""
    made = table(">#", "!status", "!document", ">size", ">tries", "result")
    room = max(16, console.width - 58)
    for entry in entries:
        result = entry.report.result
        made.add_row(
            str(entry.position),
            status_text(entry.report.status),
            cell(path_of(entry.report.url)),
            bytes_text(entry.size) if result else "",
            str(result.meta["attempt"]) if result else "",
            cell(beginning(result, room)) if result else trouble(entry),
        )
    _heading(console, f"{person.name.capitalize()}'s results, in the order of her list")
    console.print(made)


def print_totals(console: Console, frame: Frame) -> None:
    """What the database holds of each job, and in all."""
    made = table("caller", "!status", ">done", ">failed", ">pending", ">bytes")
    for view in frame.jobs:
        counts = _counts(view)
        made.add_row(
            Text(view.person.name, view.person.colour),
            status_text(view.job.status),
            *(str(counts[status]) for status in _COUNTED),
            f"{view.job.nbytes:,}",
        )
    made.add_section()
    total = sum((_counts(view) for view in frame.jobs), Counter[TargetStatus]())
    made.add_row("all", "", *(str(total[s]) for s in _COUNTED), f"{frame.nbytes:,}")
    _heading(console, "What the database holds")
    console.print(made)


_COUNTED = (TargetStatus.DONE, TargetStatus.FAILED, TargetStatus.PENDING)


def _counts(view: JobView) -> Counter[TargetStatus]:
    return Counter(row.status for row in view.targets)


def print_eviction(console: Console, budget: int, removal: Removal) -> None:
    """An eviction: the budget, and what had to go for it."""
    _heading(console, "Evict: the results may take one byte less than they do")
    _print_removal(console, f"A budget of {budget:,} bytes evicts", removal, "longest unused")


def print_sweep(console: Console, removal: Removal) -> None:
    """A sweep: what nobody had used for a day."""
    _heading(console, f"Sweep: a day later, and only {ADA.name} has looked at her job meanwhile")
    _print_removal(console, "It removes", removal, "unused for a day")


def _print_removal(console: Console, verb: str, removal: Removal, why: str) -> None:
    whose = ", ".join(f"{name}'s" for name in removal.callers) or "nobody's"
    console.print(
        Text.assemble(
            f"{verb} ",
            (plural(removal.removed, "job"), "bold"),
            f" ({whose}, {why}): results go from ",
            (f"{removal.before:,}", "bold"),
            " to ",
            (f"{removal.after:,}", "bold"),
            " bytes.",
        )
    )


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))
