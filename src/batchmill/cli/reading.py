"""``jobs``, ``show``, ``results`` and ``stats``: commands that only read."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from batchmill.cli import options, screen
from batchmill.cli.database import DEFAULT_URL, Place, again, open_store
from batchmill.cli.errors import CommandError
from batchmill.cli.screen import print_json, print_json_lines
from batchmill.cli.shapes import job_shape, read_entries
from batchmill.cli.tables import job_panel, jobs_table, print_some, results_table, status_table
from batchmill.cli.values import bytes_text, duration_text, plural
from batchmill.records import BatchJob, JobStatus, StoreStats, TargetStatus
from batchmill.validation import ID_LENGTH, MAX_COUNT

_SHOWN: Final = 50

Rows = Annotated[
    int,
    typer.Option(
        "--limit",
        min=1,
        max=MAX_COUNT,
        metavar="N",
        help="Rows in a table; JSON has them all.",
    ),
]


def jobs(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    caller: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this caller's jobs.")
    ] = None,
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs of this status.")] = None,
    after: Annotated[
        str | None, typer.Option(metavar="JOB", help="Begin below this job of a longer list.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, metavar="N", help="At most so many.")
    ] = 20,
    as_json: options.Json = False,
) -> None:
    """List jobs, newest first."""
    with open_store(Place(db, schema)) as store:
        found = store.list_jobs(caller=caller, status=status, after=after, limit=limit)
        now = store.now()
    if as_json:
        print_json([job_shape(job) for job in found])
    elif found:
        screen.print_whole(screen.out(), jobs_table(found, now))
        if len(found) == limit:
            screen.out().print(f"Older ones: --after {found[-1].id}", style="dim")
    else:
        screen.out().print("No jobs.")


def show(
    job_id: options.JobId,
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    limit: Rows = _SHOWN,
    as_json: options.Json = False,
) -> None:
    """Show a job and the status of its targets."""
    with open_store(Place(db, schema)) as store:
        job = find_job(store, job_id)
        entries = read_entries(store, job.id, with_results=False)
        if as_json:
            shapes = [_without_result(entry.shape()) for entry in entries]
            print_json({"job": job_shape(job), "targets": shapes})
            return
        console = screen.out()
        console.print(job_panel(job, store.now()))
        more = again(f"show {job.id} --limit {job.targets_total}", Place(db, schema))
        print_some(console, entries, status_table, limit=limit, total=job.targets_total, more=more)


def results(
    job_id: options.JobId,
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    limit: Rows = _SHOWN,
    as_json: options.Json = False,
) -> None:
    """Show a job's results in order; with --json whole, a line a target."""
    with open_store(Place(db, schema)) as store:
        job = find_job(store, job_id)
        entries = read_entries(store, job.id)
        if as_json:
            print_json_lines(entry.shape() for entry in entries)
            return
        more = f"{again(f'results {job.id} --json', Place(db, schema))} has all, whole"
        print_some(
            screen.out(), entries, results_table, limit=limit, total=job.targets_total, more=more
        )


def stats(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Count what the database holds; it reads every row's status."""
    with open_store(Place(db, schema)) as store:
        found, now = store.stats(), store.now()
    if as_json:
        print_json(
            {
                "jobs": {status: found.jobs.get(status, 0) for status in JobStatus},
                "targets": {status: found.targets.get(status, 0) for status in TargetStatus},
                "nbytes": found.nbytes,
                "oldest_lease": found.oldest_lease,
            }
        )
    else:
        _print_stats(found, now)


def find_job(store: Any, job_id: str) -> BatchJob:
    """The job; raises ``CommandError`` for an unknown one."""
    job = store.get_job(job_id) if _could_be_id(job_id) else None
    if job is None:
        raise CommandError(f"no such job: {job_id}")
    return job  # type: ignore[no-any-return]


def _could_be_id(text: str) -> bool:
    return 0 < len(text) <= ID_LENGTH and text.isprintable()


def _without_result(shape: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in shape.items() if key != "result"}


def _print_stats(found: StoreStats, now: float) -> None:
    console = screen.out()
    made = screen.table("status", ">jobs", ">targets")
    for status in (*JobStatus, TargetStatus.PENDING):
        counts = found.jobs.get(status), found.targets.get(status)
        if any(counts):
            made.add_row(screen.status_text(status), *(str(count or "") for count in counts))
    made.add_section()
    made.add_row("all", str(sum(found.jobs.values())), str(sum(found.targets.values())))
    console.print(made)
    console.print(f"Results: {bytes_text(found.nbytes)} ({plural(found.nbytes, 'byte')})")
    if found.oldest_lease is not None:
        console.print(f"Longest unused: for {duration_text(now - found.oldest_lease)}")
