"""What a store under test has to have: the repository of design.md section 3 and the JobStore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from batchmill.records import BatchJob, BatchTarget, JobStatus, StoreStats, TargetStatus
from batchmill.runner.protocol import JobStore


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Where stores may rightly differ; set as ``capabilities`` on the class with your tests.

    ``within``: a submit can join the application's own transaction; how it does so is a matter of
    that store's own tests. ``threads``: how many threads the races use at a time.
    """

    within: bool = True
    threads: int = 8


class Repository(Protocol):
    """Jobs and targets as an application keeps, reads and expires them."""

    def create_job(self, job: BatchJob) -> None:
        """Store a job as given."""
        ...

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None:
        """The job, None when unknown; ``touch_at`` sets its lease."""
        ...

    def find_job_by_idem_key(
        self, caller: str, idem_key: str, *, now: float, ttl: timedelta
    ) -> str | None:
        """The newest job that answers the key."""
        ...

    def count_live_jobs(self, caller: str | None = None) -> int:
        """How many jobs are queued or running."""
        ...

    def put_targets(self, job_id: str, targets: Sequence[BatchTarget]) -> None:
        """Add targets, all or none."""
        ...

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None:
        """A page of targets in order, None for an unknown job."""
        ...

    def update_target(
        self,
        job_id: str,
        idx: int,
        *,
        now: float,
        status: TargetStatus,
        result: str | None = None,
        error: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Write one target's status and texts."""
        ...

    def set_job_status(
        self, job_id: str, status: JobStatus, *, now: float, error: str = ""
    ) -> None:
        """Set status, error and lease."""
        ...

    def touch_job(self, job_id: str, *, now: float) -> None:
        """Set the lease."""
        ...

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        """Delete jobs whose lease has run out; the count."""
        ...

    def evict_oldest(self, *, max_bytes: int, limit: int | None = None) -> int:
        """Delete finished jobs until the total fits; the count."""
        ...

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int:
        """Fail every live job; the count."""
        ...

    def nbytes(self) -> int:
        """The sum of every job's ``nbytes``."""
        ...

    def stats(self) -> StoreStats:
        """What was asked, and what is stored."""
        ...

    def list_jobs(
        self,
        *,
        caller: str | None = None,
        status: JobStatus | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[BatchJob]:
        """A page of jobs, newest first."""
        ...

    def delete_job(self, job_id: str) -> bool:
        """Delete a job; False when unknown."""
        ...


class Store(Repository, JobStore, Protocol):
    """Both halves: what most of the contract runs on."""
