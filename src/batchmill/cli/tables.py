"""Jobs and targets as tables for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from batchmill.cli.screen import cell, plain, status_text, table
from batchmill.cli.shapes import Entry
from batchmill.cli.values import bytes_text, duration_text, plural
from batchmill.records import BatchJob
from batchmill.runner import Result


def jobs_table(jobs: Iterable[BatchJob], now: float) -> Table:
    """One row a job; ages are counted from ``now``, unix seconds."""
    made = table("!job", "caller", "!status", ">targets", ">results", ">age")
    for job in jobs:
        made.add_row(
            Text(job.id),
            cell(shortened(job.caller, 40)),
            status_text(job.status),
            f"{job.targets_done}/{job.targets_total}",
            bytes_text(job.nbytes),
            duration_text(now - job.created_at),
        )
    return made


def job_panel(job: BatchJob, now: float) -> Panel:
    """A job's fields in a frame."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("status", status_text(job.status))
    if job.error:
        grid.add_row("error", cell(job.error, "red"))
    grid.add_row("caller", cell(f"{job.caller} ({job.caller_class})"))
    grid.add_row("targets", f"{job.targets_done} of {job.targets_total} finished")
    grid.add_row("results", bytes_text(job.nbytes))
    grid.add_row("created", _moment(job.created_at, now))
    grid.add_row("last used", _moment(job.lease, now))
    return Panel(grid, title=f"job {job.id}", title_align="left", border_style="dim", expand=False)


def _moment(seconds: int, now: float) -> str:
    try:
        when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        when = str(seconds)
    return f"{when}, {duration_text(now - seconds)} ago" if seconds <= now else when


def status_table(entries: Iterable[Entry]) -> Table:
    """Targets without their results."""
    made = table(">#", "!status", "target", "error")
    for entry in entries:
        report = entry.report
        made.add_row(
            str(entry.position), status_text(report.status), cell(report.url), trouble(entry)
        )
    return made


def results_table(entries: Iterable[Entry]) -> Table:
    """Targets with the size and the beginning of their results."""
    made = table(">#", "!status", ">size", "target", "result")
    for entry in entries:
        report = entry.report
        made.add_row(
            str(entry.position),
            status_text(report.status),
            bytes_text(entry.size) if report.result else "",
            cell(shortened(report.url, 60)),
            cell(beginning(report.result)) if report.result else trouble(entry),
        )
    return made


def print_some(
    console: Console,
    entries: Iterable[Entry],
    kind: Callable[[Iterable[Entry]], Table],
    *,
    limit: int,
    total: int,
    more: str,
) -> None:
    """A table of the first ``limit`` entries, and where the rest is to be had."""
    console.print(kind(islice(entries, limit)))
    if total > limit:
        text = Text(f"… and {plural(total - limit, 'more target')}: {more}", style="dim")
        console.print(text, soft_wrap=True)  # a command to copy has no line break in it


def trouble(entry: Entry) -> Text:
    """A target's error and hint."""
    text = Text().append(plain(entry.report.error), style="red")
    if entry.report.hint:
        text.append(f" ({plain(entry.report.hint)})", style="dim")
    return text


def beginning(result: Result, most: int = 50) -> str:
    """The first words of a result's content."""
    if result.meta.get("encoding") == "base64":
        return "(binary, in base64)"
    content = result.content
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return shortened(" ".join(text[: most * 20].split()), most)


def shortened(text: str, most: int) -> str:
    """At most ``most`` characters, the cut marked."""
    return text if len(text) <= most else text[: most - 1] + "…"
