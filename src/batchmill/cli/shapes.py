"""Jobs and targets as JSON: the keys that programs may rely on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from batchmill.errors import JobNotFound
from batchmill.records import BatchJob, BatchTarget, stored_bytes
from batchmill.runner.reports import TargetReport, target_report_of

_ROWS: Final = 500
_PAGE_BYTES: Final = 8 * 2**20


class Readable(Protocol):
    """What reading targets needs of a store."""

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None:
        """As in ``JobStore``."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A target at its place in a list: ``position`` counts through all the jobs of a run."""

    position: int
    job_id: str
    report: TargetReport
    size: int
    """The UTF-8 bytes of its stored result."""

    def shape(self) -> dict[str, Any]:
        """What a line of results holds, in JSON."""
        report = self.report
        result = report.result
        return {
            "idx": self.position,
            "job_id": self.job_id,
            "url": report.url,
            "options": dict(report.options),
            "status": str(report.status),
            "result": result and {"content": result.content, "meta": dict(result.meta)},
            "error": report.error,
            "hint": report.hint,
        }


def read_entries(
    store: Readable, job_id: str, *, offset: int = 0, with_results: bool = True
) -> Iterator[Entry]:
    """A job's targets in order, a page at a time; ``offset`` is added to their positions.

    Raises ``JobNotFound``, also when the job goes away half-way.
    """
    start = 0
    while True:
        page = store.get_targets(
            job_id, start=start, limit=_ROWS, with_results=with_results, max_bytes=_PAGE_BYTES
        )
        if page is None:
            raise JobNotFound(f"no such job: {job_id}")
        if not page:
            return
        for row in page:
            yield Entry(offset + row.idx, job_id, target_report_of(row), stored_bytes(row.result))
        start = page[-1].idx + 1


def job_shape(job: BatchJob) -> dict[str, Any]:
    """A job in JSON; times are unix seconds."""
    return {
        "id": job.id,
        "caller": job.caller,
        "caller_class": job.caller_class,
        "status": str(job.status),
        "error": job.error,
        "targets_total": job.targets_total,
        "targets_done": job.targets_done,
        "created_at": job.created_at,
        "lease": job.lease,
        "nbytes": job.nbytes,
    }
