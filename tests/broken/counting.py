"""Faults of counters, statuses and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batchmill.errors import TargetExists
from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.testing import MemoryStore
from tests.broken.registry import in_memory


class CountsTwice(MemoryStore):
    """A re-write of a finished target counts again."""

    def _store_target(self, new: BatchTarget, *, now: int) -> None:
        again = self._targets[new.job_id][new.idx].status.finished and new.status.finished
        super()._store_target(new, now=now)
        if again:
            self._change_job(new.job_id, targets_done=self._jobs[new.job_id].targets_done + 1)


class CountsCharacters(MemoryStore):
    """A result counts its characters."""

    def _store_target(self, new: BatchTarget, *, now: int) -> None:
        old = self._targets[new.job_id][new.idx]
        job = self._jobs[new.job_id]
        super()._store_target(new, now=now)
        size = job.nbytes + len(new.result or "") - len(old.result or "")
        self._change_job(new.job_id, nbytes=size)


class AddsOnly(MemoryStore):
    """A re-write adds its bytes and subtracts none."""

    def _store_target(self, new: BatchTarget, *, now: int) -> None:
        old = self._targets[new.job_id][new.idx]
        super()._store_target(new, now=now)
        size = self._jobs[new.job_id].nbytes + len((old.result or "").encode())
        self._change_job(new.job_id, nbytes=size)


class LeavesLease(MemoryStore):
    """A write by hand leaves the lease."""

    def update_target(self, job_id: str, idx: int, **given: Any) -> None:
        lease = self._jobs[job_id].lease if job_id in self._jobs else 0
        super().update_target(job_id, idx, **given)
        self._change_job(job_id, now=lease)


class LowersNoLease(MemoryStore):
    """An older clock doesn't set a lease."""

    def _change_job(self, job_id: str, *, now: int | None = None, **changes: Any) -> None:
        lease = None if now is None else max(now, self._jobs[job_id].lease)
        super()._change_job(job_id, now=lease, **changes)


class ReadsTouch(MemoryStore):
    """A read bumps the lease."""

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None:
        job = super().get_job(job_id, touch_at=touch_at)
        if job is not None and touch_at is None:
            self._change_job(job_id, now=job.lease + 1)
        return job


class GoesBack(MemoryStore):
    """A finished target may be pending again."""

    def _check_transition(self, old: BatchTarget, new: TargetStatus) -> None:
        if not old.status.finished:
            super()._check_transition(old, new)


class LeavesTerminal(MemoryStore):
    """A terminal status can be overwritten by hand."""

    def set_job_status(
        self, job_id: str, status: JobStatus | str, *, now: float, error: str = ""
    ) -> None:
        if job_id in self._jobs and not self._lives(job_id):
            self._change_job(job_id, status=JobStatus.RUNNING)
        super().set_job_status(job_id, status, now=now, error=error)


class WritesWhatIsHeld(MemoryStore):
    """A target in flight can be written by hand."""

    def _check_transition(self, old: BatchTarget, new: TargetStatus) -> None:
        if not self._is_next(old.job_id, old.idx):
            super()._check_transition(old, new)


class StoresHalf(MemoryStore):
    """What comes before an index that is taken is stored all the same."""

    def put_targets(self, job_id: str, targets: Sequence[BatchTarget]) -> None:
        try:
            super().put_targets(job_id, targets)
        except TargetExists:
            for target in targets:
                if target.idx not in self._targets[job_id]:
                    super().put_targets(job_id, [target])
            raise


class IgnoresCase(MemoryStore):
    """Keys compare without case, as by a database's default collation."""

    def _newest_with_key(self, caller: str, key: str, *, now: int, ttl: int) -> BatchJob | None:
        for job in list(self._jobs.values()):
            if job.idem_key.casefold() == key.casefold():
                key = job.idem_key
        return super()._newest_with_key(caller, key, now=now, ttl=ttl)


class MarksTargetsToo(MemoryStore):
    """The marking at a start counts what it puts back as done."""

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int:
        running = [
            job_id
            for job_id, targets in self._targets.items()
            if any(target.status is TargetStatus.RUNNING for target in targets.values())
        ]
        count = super().mark_in_flight_failed(reason, now=now)
        for job_id in running:
            self._change_job(job_id, targets_done=self._jobs[job_id].targets_done + 1)
        return count


STORES = [
    in_memory("a re-write counts again", CountsTwice, "Counters"),
    in_memory("characters for bytes", CountsCharacters, "Counters"),
    in_memory("a re-write subtracts nothing", AddsOnly, "Counters"),
    in_memory("a write leaves the lease", LeavesLease, "Counters"),
    in_memory("an older clock sets no lease", LowersNoLease, "Counters", "JobRows"),
    in_memory("a read bumps the lease", ReadsTouch, "JobRows"),
    in_memory("a finished target goes back", GoesBack, "Refusals"),
    in_memory("a terminal status is overwritten", LeavesTerminal, "JobStatuses"),
    in_memory("a held target is written by hand", WritesWhatIsHeld, "ByHand"),
    in_memory("half of the targets are stored", StoresHalf, "TargetRows"),
    in_memory("keys compare without case", IgnoresCase, "Lookups"),
    in_memory("marking counts what it puts back", MarksTargetsToo, "Marking"),
]
