"""What ``batchmill run`` says at its beginning and at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from batchmill.cli.database import Place, again
from batchmill.cli.running import Run
from batchmill.cli.screen import STYLES, cell
from batchmill.cli.shapes import Entry, job_shape
from batchmill.cli.tables import print_some, results_table, status_table
from batchmill.cli.values import bytes_text, duration_text, plural
from batchmill.records import BatchJob, JobStatus, TargetStatus

_SHOWN: Final = 20
_NAMED: Final = 3
"""More jobs than this are counted and not named."""
_ORDER: Final = (
    TargetStatus.DONE,
    TargetStatus.FAILED,
    TargetStatus.RUNNING,
    TargetStatus.PENDING,
)


@dataclass(slots=True)
class Summary:
    """How a run ended, counted from its stored rows."""

    jobs: list[BatchJob]
    gone: list[str]
    counts: dict[TargetStatus, int] = field(default_factory=lambda: dict.fromkeys(TargetStatus, 0))
    failures: list[Entry] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many targets there are."""
        return sum(self.counts.values())

    @property
    def status(self) -> JobStatus:
        """The status of all the jobs as if they were one."""
        found = {job.status for job in self.jobs}
        if self.gone or not found:
            return JobStatus.FAILED
        for unfinished in (JobStatus.CANCELLED, JobStatus.RUNNING, JobStatus.QUEUED):
            if unfinished in found:
                return unfinished
        return found.pop() if len(found) == 1 else JobStatus.PARTIAL


def summarise(run: Run) -> Summary:
    """Count a run's targets and collect its failures; no result is read."""
    summary = Summary(run.jobs(), run.gone())
    for entry in run.entries(with_results=False):
        summary.counts[entry.report.status] += 1
        if entry.report.status is TargetStatus.FAILED:
            summary.failures.append(entry)
    return summary


def announce(console: Console, run: Run, place: Place, now: float, hold_for: timedelta) -> None:
    """Say which job it is: new, going on, or finished before."""
    jobs, old = run.jobs(), {part.job_id for part in run.parts if part.reused}
    if len(jobs) > _NAMED:
        console.print(_announcement_of_many(jobs, old), soft_wrap=True)
    else:
        for job in jobs:
            console.print(_announcement(job, place, now, reused=job.id in old), soft_wrap=True)
    held = run.held()
    if held:
        which = ", ".join(str(place) for place in held[:5]) + (", …" if len(held) > 5 else "")
        console.print(
            f"Target {which} is in another run's hands. If that run was killed, it is let go "
            f"within {duration_text(hold_for.total_seconds())}: waiting.",
            soft_wrap=True,
        )


def _announcement_of_many(jobs: list[BatchJob], old: set[str]) -> Text:
    ended = sum(job.id in old and job.status.terminal for job in jobs)
    going_on = sum(job.id in old and job.status.live for job in jobs)
    counts = {"reused": ended, "going on": going_on, "new": len(jobs) - ended - going_on}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    targets = plural(sum(job.targets_total for job in jobs), "target")
    return Text(f"{len(jobs)} jobs for {targets}: {told}.")


def _announcement(job: BatchJob, place: Place, now: float, *, reused: bool) -> Text:
    targets = plural(job.targets_total, "target")
    if not reused:
        return Text(f"Job {job.id}: {targets}.")
    if job.status.live:
        return Text(f"Job {job.id} goes on: {job.targets_done} of {targets} finished before.")
    since = duration_text(now - job.created_at)
    return Text(
        f"Job {job.id} is reused: the same {targets}, submitted {since} ago, ended {job.status}. "
        f"To fetch them again: {again(f'delete {job.id}', place)}"
    )


def print_report(console: Console, run: Run, summary: Summary, place: Place) -> None:
    """The results, the failures that are further down, and the count."""
    more = again(f"results {run.job_ids[0]}", place)
    if len(run.job_ids) > 1:
        more += f", and the other {plural(len(run.job_ids) - 1, 'job')}"
    print_some(console, run.entries(), results_table, limit=_SHOWN, total=summary.total, more=more)
    further = [entry for entry in summary.failures if entry.position >= _SHOWN]
    if further:
        console.print(Text("Failed further down:", style="bold"))
        print_some(console, further, status_table, limit=_SHOWN, total=len(further), more=more)
    for line in _last_lines(summary):
        console.print(line, soft_wrap=True)


def _last_lines(summary: Summary) -> list[Text]:
    lines = [cell(f"Job {job.id}: {job.error}", "red") for job in summary.jobs if job.error]
    lines += [Text(f"Job {job_id} was removed meanwhile.", "red") for job_id in summary.gone]
    counts = ", ".join(f"{count:,} {status}" for status, count in summary.counts.items() if count)
    status = summary.status
    size = bytes_text(sum(job.nbytes for job in summary.jobs))
    lines.append(Text.assemble((str(status), STYLES[status]), f": {counts}; results {size}"))
    if status is JobStatus.CANCELLED:
        lines.append(Text("What was fetched is kept; the same list, run again, begins anew."))
    return lines


def report_shape(run: Run, summary: Summary) -> dict[str, Any]:
    """The end of a run in JSON."""
    reused = {part.job_id: part.reused for part in run.parts}
    return {
        "status": str(summary.status),
        "jobs": [job_shape(job) | {"reused": reused[job.id]} for job in summary.jobs],
        "gone": summary.gone,
        "targets": {str(status): count for status, count in summary.counts.items()},
        "failures": [
            {key: value for key, value in entry.shape().items() if key != "result"}
            for entry in summary.failures
        ],
    }
