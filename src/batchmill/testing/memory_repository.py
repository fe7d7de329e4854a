"""The repository half of the MemoryStore: the table of design.md section 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from batchmill.errors import (
    InvalidTransition,
    JobExists,
    JobNotFound,
    TargetExists,
    TargetNotFound,
)
from batchmill.record_checks import check_job, check_targets, check_written
from batchmill.records import (
    BatchJob,
    BatchTarget,
    JobStatus,
    StoreStats,
    TargetStatus,
    stored_bytes,
)
from batchmill.testing.memory_state import MemoryState
from batchmill.validation import (
    check_count,
    check_flag,
    check_id,
    check_job_status,
    check_limit,
    check_max_bytes,
    check_name,
    check_seconds,
    check_target_status,
    check_text,
    check_ttl,
    to_ms,
)


class MemoryRepository(MemoryState):
    """Jobs and targets as an application keeps, reads and expires them."""

    def create_job(self, job: BatchJob) -> None:
        """Store the job as given, counters included; it has no turn. Raises ``JobExists``."""
        job = check_job(job)
        with self._lock:
            if job.id in self._jobs:
                raise JobExists("job.id: a job of this id is already stored; choose another id")
            self._jobs[job.id] = job
            self._targets[job.id] = {}

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None:
        """The job, None when unknown; ``touch_at`` also sets its lease."""
        job_id = check_id("job_id", job_id)
        lease = None if touch_at is None else check_seconds("touch_at", touch_at)
        with self._lock:
            self._count("get_job", found=job_id in self._jobs)
            if job_id in self._jobs and lease is not None:
                self._change_job(job_id, now=lease)
            return self._jobs.get(job_id)

    def find_job_by_idem_key(
        self, caller: str, idem_key: str, *, now: float, ttl: timedelta
    ) -> str | None:
        """The newest job that answers this caller's key; it doesn't touch the lease."""
        caller = check_name("caller", caller)
        idem_key = check_name("idem_key", idem_key)
        seconds, ttl_seconds = check_seconds("now", now), check_ttl("ttl", ttl)
        with self._lock:
            job = self._newest_with_key(caller, idem_key, now=seconds, ttl=ttl_seconds)
            self._count("find_job_by_idem_key", found=job is not None)
            return None if job is None else job.id

    def count_live_jobs(self, caller: str | None = None) -> int:
        """How many jobs are queued or running, of one caller or of all."""
        if caller is not None:
            caller = check_name("caller", caller)
        with self._lock:
            return self._count_live(caller)

    def put_targets(self, job_id: str, targets: Sequence[BatchTarget]) -> None:
        """Add targets, all or none; the job's counters grow by what they hold.

        Raises ``JobNotFound``, ``TargetExists``, and ``InvalidTransition`` for a submitted job.
        """
        job_id = check_id("job_id", job_id)
        new = check_targets(job_id, targets)
        with self._lock:
            job = self._known(job_id)
            if job_id in self._turns:
                raise InvalidTransition(
                    "targets: those of a submitted job are fixed; submit another job"
                )
            if any(target.idx in self._targets[job_id] for target in new):
                raise TargetExists("targets: the job already has a target of one of these indexes")
            self._targets[job_id].update({target.idx: target for target in new})
            self._change_job(
                job_id,
                targets_done=job.targets_done + sum(target.status.finished for target in new),
                nbytes=job.nbytes + sum(stored_bytes(target.result) for target in new),
            )

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None:
        """The targets from index ``start`` on in order, None for an unknown job.

        With results and ``max_bytes`` it stops before the target whose result would take the
        results over it, but hands out at least one.
        """
        job_id = check_id("job_id", job_id)
        start = check_count("start", start)
        limit = check_limit("limit", limit)
        check_flag("with_results", with_results)
        budget = None if max_bytes is None else check_max_bytes("max_bytes", max_bytes)
        with self._lock:
            self._count("get_targets", found=job_id in self._jobs)
            if job_id not in self._jobs:
                return None
            rows = sorted(self._targets[job_id].values(), key=lambda target: target.idx)
        page = [target for target in rows if target.idx >= start][:limit]
        if not with_results:
            return [replace(target, result=None) for target in page]
        return page if budget is None else _cut(page, budget)

    def update_target(
        self,
        job_id: str,
        idx: int,
        *,
        now: float,
        status: TargetStatus | str,
        result: str | None = None,
        error: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Write a target's status and texts; sets the lease, counts the difference.

        On a submitted job it moves the rotation on, and settles the job after its last target.
        Raises ``TargetNotFound``, and ``InvalidTransition`` for a finished target that would
        go back, a target in flight, or a start on a submitted job.
        """
        job_id = check_id("job_id", job_id)
        idx = check_count("idx", idx)
        lease, new_status = check_seconds("now", now), check_target_status("status", status)
        result, error, hint = check_written(new_status, result, error, hint)
        with self._lock:
            old = self._targets.get(job_id, {}).get(idx)
            if old is None:
                raise TargetNotFound(
                    "idx: the job has no target of this index, or there is no such job"
                )
            self._check_transition(old, new_status)
            new = replace(old, status=new_status, result=result, error=error, hint=hint)
            self._store_target(new, now=lease)
            if new_status.finished and self._is_next(job_id, idx):
                self._move_on(job_id, now=lease)

    def set_job_status(
        self, job_id: str, status: JobStatus | str, *, now: float, error: str = ""
    ) -> None:
        """Set status, error and lease; a terminal status ends a submitted job as a cancel does.

        Raises ``JobNotFound``, and ``InvalidTransition`` for a terminal job of another status.
        """
        job_id = check_id("job_id", job_id)
        new, lease = check_job_status("status", status), check_seconds("now", now)
        error = check_text("error", error)
        with self._lock:
            job = self._known(job_id)
            if job.status.terminal and job.status is not new:
                raise InvalidTransition(
                    f"status: the job is {job.status.value}, which is final; "
                    f"it can't become {new.value}"
                )
            if new.terminal:
                self._end(job_id, new, now=lease, error=error)
            else:
                self._change_job(job_id, now=lease, status=new, error=error)

    def touch_job(self, job_id: str, *, now: float) -> None:
        """Set the lease; raises ``JobNotFound``."""
        job_id = check_id("job_id", job_id)
        lease = check_seconds("now", now)
        with self._lock:
            self._known(job_id)
            self._change_job(job_id, now=lease)

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        """Delete jobs whose ``lease + ttl <= now``, oldest lease first, live ones too; the count.

        A job whose hold still stands is left alone (design.md section 3).
        """
        seconds, ttl_seconds, now_ms = check_seconds("now", now), check_ttl("ttl", ttl), to_ms(now)
        limit = check_limit("limit", limit)
        with self._lock:
            by_lease = sorted(self._jobs.values(), key=lambda job: (job.lease, job.id))
            out = [job.id for job in by_lease if job.lease + ttl_seconds <= seconds]
            free = [job_id for job_id in out if not self._hold_stands(job_id, now_ms)][:limit]
            for job_id in free:
                self._forget(job_id)
            return len(free)

    def evict_oldest(self, *, max_bytes: int, limit: int | None = None) -> int:
        """Delete finished jobs, oldest lease first, until the total fits; the count."""
        budget = check_max_bytes("max_bytes", max_bytes)
        limit = check_limit("limit", limit)
        with self._lock:
            return self._evict(budget, limit=limit, keep=frozenset())

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int:
        """Fail every live job with this error, and end whatever is in flight; the live ones' count.

        It is for the start of an application whose one process owns the store.
        """
        reason = check_text("reason", reason)
        lease = check_seconds("now", now)
        with self._lock:
            live = [job.id for job in self._jobs.values() if job.status.live]
            for job_id in live:
                self._change_job(job_id, now=lease, status=JobStatus.FAILED, error=reason)
            for job_id in {*live, *self._turns}:
                self._turns.pop(job_id, None)
                for target in list(self._targets[job_id].values()):
                    if target.status is TargetStatus.RUNNING:
                        self._set_target_status(job_id, target.idx, TargetStatus.PENDING)
            return len(live)

    def nbytes(self) -> int:
        """The sum of every job's ``nbytes``."""
        with self._lock:
            return self._total_bytes()

    def stats(self) -> StoreStats:
        """What was asked of this store, and what it holds."""
        with self._lock:
            jobs = self._jobs.values()
            targets = [target for rows in self._targets.values() for target in rows.values()]
            return StoreStats(
                hits=dict(self._hits),
                misses=dict(self._misses),
                jobs=Counter(str(job.status) for job in jobs),
                targets=Counter(str(target.status) for target in targets),
                nbytes=self._total_bytes(),
                oldest_lease=min((job.lease for job in jobs), default=None),
            )

    def list_jobs(
        self,
        *,
        caller: str | None = None,
        status: JobStatus | str | None = None,
        after: str | None = None,
        limit: int | None = 100,
    ) -> list[BatchJob]:
        """Jobs, newest first, ties by id; the page after the job ``after``.

        Raises ``JobNotFound`` when ``after`` is no job's id.
        """
        if caller is not None:
            caller = check_name("caller", caller)
        if after is not None:
            after = check_id("after", after)
        wanted = None if status is None else check_job_status("status", status)
        limit = check_limit("limit", limit)
        with self._lock:
            jobs = sorted(self._jobs.values(), key=_age, reverse=True)
            if after is not None and after not in self._jobs:
                raise JobNotFound(
                    "after: no such job, or it is gone by now; begin again without it"
                )
            if after is not None:
                before = _age(self._jobs[after])
                jobs = [job for job in jobs if _age(job) < before]
        return [
            job for job in jobs if caller in {None, job.caller} and wanted in {None, job.status}
        ][:limit]

    def delete_job(self, job_id: str) -> bool:
        """Delete a job, live or not; False when unknown."""
        job_id = check_id("job_id", job_id)
        with self._lock:
            found = job_id in self._jobs
            if found:
                self._forget(job_id)
            return found

    def _known(self, job_id: str) -> BatchJob:
        if job_id not in self._jobs:
            raise JobNotFound("job_id: no such job; it never was, or was swept, evicted or deleted")
        return self._jobs[job_id]

    def _count(self, accessor: str, *, found: bool) -> None:
        (self._hits if found else self._misses)[accessor] += 1

    def _hold_stands(self, job_id: str, now_ms: int) -> bool:
        turn = self._turns.get(job_id)
        return turn is not None and turn.token is not None and turn.held_until > now_ms

    def _is_next(self, job_id: str, idx: int) -> bool:
        turn = self._turns.get(job_id)
        return turn is not None and turn.next_idx == idx

    def _check_transition(self, old: BatchTarget, new: TargetStatus) -> None:
        """Finished stays finished, and a submitted job's targets are started by claims only."""
        if old.status.finished and not new.finished:
            raise InvalidTransition(
                f"status: the target is {old.status.value}; it can't become {new.value} again"
            )
        turn = self._turns.get(old.job_id)
        if turn is None:
            return
        if new is TargetStatus.RUNNING:
            raise InvalidTransition("status: only a runner starts the targets of a submitted job")
        if turn.token is not None and self._is_next(old.job_id, old.idx):
            raise InvalidTransition(
                "idx: a runner has this target in flight; wait until it is stored"
            )


def _age(job: BatchJob) -> tuple[int, str]:
    return job.created_at, job.id


def _cut(page: list[BatchTarget], max_bytes: int) -> list[BatchTarget]:
    """As many targets as have results within the budget, at least one."""
    total = 0
    for count, target in enumerate(page):
        total += stored_bytes(target.result)
        if count > 0 and total > max_bytes:
            return page[:count]
    return page
