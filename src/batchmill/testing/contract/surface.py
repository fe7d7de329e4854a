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

    def create_job(self, job: BatchJob) -> None: ...

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None: ...

    def find_job_by_idem_key(
        self, caller: str, idem_key: str, *, now: float, ttl: timedelta
    ) -> str | None: ...

    def count_live_jobs(self, caller: str | None = None) -> int: ...

    def put_targets(self, job_id: str, targets: Sequence[BatchTarget]) -> None: ...

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None: ...

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
    ) -> None: ...

    def set_job_status(
        self, job_id: str, status: JobStatus, *, now: float, error: str = ""
    ) -> None: ...

    def touch_job(self, job_id: str, *, now: float) -> None: ...

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int: ...

    def evict_oldest(self, *, max_bytes: int, limit: int | None = None) -> int: ...

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int: ...

    def nbytes(self) -> int: ...

    def stats(self) -> StoreStats: ...

    def list_jobs(
        self,
        *,
        caller: str | None = None,
        status: JobStatus | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[BatchJob]: ...

    def delete_job(self, job_id: str) -> bool: ...


class Store(Repository, JobStore, Protocol):
    """Both halves: what most of the contract runs on."""
