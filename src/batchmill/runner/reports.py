"""What a runner tells of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from batchmill.quick import quick
from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.runner.targets import Result, read_options, read_result


class Submission(NamedTuple):
    """The answer to a submit; ``reused`` when an earlier job of the same targets answered."""

    job_id: str
    reused: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands; ``created_at`` and ``lease`` are unix seconds, ``nbytes`` UTF-8."""

    id: str
    caller: str
    caller_class: str
    status: JobStatus
    error: str
    targets_total: int
    targets_done: int
    created_at: int
    lease: int
    nbytes: int


@quick
@dataclass(frozen=True, slots=True)
class TargetReport:
    """A target as it stands; error and hint are "" where there is none.

    ``result`` is None until the target is done, and where it wasn't asked for.
    """

    idx: int
    url: str
    options: Mapping[str, Any]
    status: TargetStatus
    result: Result | None
    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job and its targets, in order."""

    job: Job
    targets: list[TargetReport]


def job_of(row: BatchJob) -> Job:
    """The job of a stored row."""
    return Job(
        id=row.id,
        caller=row.caller,
        caller_class=row.caller_class,
        status=JobStatus(row.status),
        error=row.error,
        targets_total=row.targets_total,
        targets_done=row.targets_done,
        created_at=row.created_at,
        lease=row.lease,
        nbytes=row.nbytes,
    )


def target_report_of(row: BatchTarget) -> TargetReport:
    """The report of a stored row; options that aren't a JSON object read as empty."""
    return TargetReport(
        row.idx,
        row.url,
        read_options(row.options) or {},
        row.status if type(row.status) is TargetStatus else TargetStatus(row.status),
        read_result(row.result),
        row.error or "",
        row.hint or "",
    )
