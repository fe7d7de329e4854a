"""Faults of sweeps and evictions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from batchmill.records import JobStatus
from batchmill.testing import MemoryStore
from tests.broken.registry import in_memory


class SweepsByAge(MemoryStore):
    """What counts is when a job was made, not when it was last used."""

    def sweep(self, **given: Any) -> int:
        leases = {job_id: job.lease for job_id, job in self._jobs.items()}
        for job_id, job in self._jobs.items():
            self._jobs[job_id] = replace(job, lease=job.created_at)
        swept = super().sweep(**given)
        for job_id, job in self._jobs.items():
            self._jobs[job_id] = replace(job, lease=leases[job_id])
        return swept


class SweepsTheHeld(MemoryStore):
    """A standing hold keeps nothing."""

    def _hold_stands(self, job_id: str, now_ms: int) -> bool:
        return False


class KeepsTheHeld(MemoryStore):
    """A lapsed hold keeps its job too."""

    def _hold_stands(self, job_id: str, now_ms: int) -> bool:
        turn = self._turns.get(job_id)
        return turn is not None and turn.token is not None


class SweepsLate(MemoryStore):
    """A job goes a second after its lease has run out."""

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        return super().sweep(now=now - 1, ttl=ttl, limit=limit)


class RoundsDown(MemoryStore):
    """The fraction of a ttl is lost."""

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        whole = timedelta(days=ttl.days, seconds=ttl.seconds) if ttl > timedelta(0) else ttl
        return super().sweep(now=now, ttl=whole, limit=limit)


class SparesTheLive(MemoryStore):
    """A sweep leaves live jobs."""

    def sweep(self, **given: Any) -> int:
        live = {job_id: job for job_id, job in self._jobs.items() if job.status.live}
        for job_id in live:
            self._change_job(job_id, now=10**12)
        swept = super().sweep(**given)
        self._jobs.update(live)
        return swept


class LeavesOrphans(MemoryStore):
    """A sweep leaves targets behind; a new job of the same id has them."""

    def __init__(self) -> None:
        super().__init__()
        self.orphans: dict[str, Any] = {}

    def _forget(self, job_id: str) -> None:
        self.orphans[job_id] = self._targets[job_id]
        super()._forget(job_id)

    def create_job(self, job: Any) -> None:
        super().create_job(job)
        self._targets[job.id].update(self.orphans.get(job.id, {}))


class LeavesTurns(MemoryStore):
    """A sweep leaves the job in the rotation; claims of it are made of thin air."""

    def _forget(self, job_id: str) -> None:
        turn = self._turns.get(job_id)
        job, targets = self._jobs[job_id], self._targets[job_id]
        super()._forget(job_id)
        if turn is not None:
            self._turns[job_id], self._targets[job_id] = turn, targets
            self._jobs[job_id] = replace(job, status=JobStatus.CANCELLED)


class LeavesBytes(MemoryStore):
    """The kept total never shrinks when jobs go."""

    def __init__(self) -> None:
        super().__init__()
        self.lost_bytes = 0

    def _forget(self, job_id: str) -> None:
        self.lost_bytes += self._jobs[job_id].nbytes
        super()._forget(job_id)

    def nbytes(self) -> int:
        return super().nbytes() + self.lost_bytes


class EvictsLive(MemoryStore):
    """Live jobs go too."""

    def _evict(self, max_bytes: int, *, limit: int | None, keep: frozenset[str]) -> int:
        before = dict(self._jobs)
        for job_id, job in before.items():
            self._jobs[job_id] = replace(job, status=JobStatus.DONE)
        evicted = super()._evict(max_bytes, limit=limit, keep=keep)
        self._jobs = {job_id: before[job_id] for job_id in self._jobs}
        return evicted


class _InAnotherOrder(MemoryStore):
    """Evicts by another order than by lease."""

    def _place(self, job: Any) -> int:
        raise NotImplementedError

    def _evict(self, max_bytes: int, *, limit: int | None, keep: frozenset[str]) -> int:
        leases = {job_id: job.lease for job_id, job in self._jobs.items()}
        for job_id, job in self._jobs.items():
            self._jobs[job_id] = replace(job, lease=self._place(job))
        evicted = super()._evict(max_bytes, limit=limit, keep=keep)
        for job_id, job in self._jobs.items():
            self._jobs[job_id] = replace(job, lease=leases[job_id])
        return evicted


class EvictsNewestFirst(_InAnotherOrder):
    """The most lately used job goes first."""

    def _place(self, job: Any) -> int:
        return -int(job.lease)


class EvictsByAge(_InAnotherOrder):
    """The job that was made first goes first, used or not."""

    def _place(self, job: Any) -> int:
        return int(job.created_at)


class EvictsOneMore(MemoryStore):
    """A total that just fits is too much."""

    def _evict(self, max_bytes: int, *, limit: int | None, keep: frozenset[str]) -> int:
        return super()._evict(max_bytes - 1, limit=limit, keep=keep)


class EvictsWhatEndedHere(MemoryStore):
    """A job that ends in an exchange may be evicted by it."""

    def _evict(self, max_bytes: int, *, limit: int | None, keep: frozenset[str]) -> int:
        return super()._evict(max_bytes, limit=limit, keep=frozenset())


class IgnoresLimits(MemoryStore):
    """A limit bounds nothing."""

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        return super().sweep(now=now, ttl=ttl)


STORES = [
    in_memory("sweeps by creation time", SweepsByAge, "Sweeping"),
    in_memory("sweeps what is held", SweepsTheHeld, "SweepingSubmitted"),
    in_memory("a lapsed hold keeps its job", KeepsTheHeld, "SweepingSubmitted"),
    in_memory("sweeps a second late", SweepsLate, "Sweeping"),
    in_memory("a ttl's fraction is lost", RoundsDown, "Sweeping"),
    in_memory("a sweep spares live jobs", SparesTheLive, "Sweeping"),
    in_memory("targets are left by a sweep", LeavesOrphans, "Sweeping"),
    in_memory("turns are left by a sweep", LeavesTurns, "SweepingSubmitted"),
    in_memory("bytes are left by a sweep", LeavesBytes, "Sweeping"),
    in_memory("a limit bounds no sweep", IgnoresLimits, "Sweeping"),
    in_memory("evicts live jobs", EvictsLive, "Eviction"),
    in_memory("evicts newest first", EvictsNewestFirst, "Eviction"),
    in_memory("evicts by creation time", EvictsByAge, "Eviction"),
    in_memory("evicts one job too many", EvictsOneMore, "Eviction"),
    in_memory("evicts what ended in the exchange", EvictsWhatEndedHere, "BudgetInExchange"),
]
