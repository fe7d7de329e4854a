"""What a MemoryStore holds, and the few steps that all of its methods are made of."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from batchmill.records import (
    KEY_STATUSES,
    BatchJob,
    BatchTarget,
    JobStatus,
    Settled,
    TargetStatus,
    status_of_finished,
    stored_bytes,
)
from batchmill.validation import AT_ONCE, check_time


@dataclass(slots=True)
class Turn:
    """The place of one live, submitted job in the rotation (design.md section 2).

    ``token`` is None unless its target ``next_idx`` is in flight. Times are unix milliseconds.
    """

    turn: int
    next_idx: int
    queue: str
    home: str | None
    ready_at: int = AT_ONCE
    busy_since: int | None = None
    holder: str | None = None
    token: str | None = None
    held_until: int = 0

    def let_go(self) -> None:
        """Nobody has its target in flight any more."""
        self.holder, self.token, self.held_until = None, None, 0


class MemoryState:
    """The tables as dictionaries, one lock around them, and the steps that change them.

    The steps expect the lock to be held and their arguments to be checked: they can't fail, so
    that a rejected call has changed nothing.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._jobs: dict[str, BatchJob] = {}
        self._targets: dict[str, dict[int, BatchTarget]] = {}
        self._turns: dict[str, Turn] = {}
        self._runners: dict[str, tuple[int, int]] = {}  # id -> seen_at, hold_for in milliseconds
        self._starts: Counter[tuple[str, int]] = Counter()
        self._losses: Counter[tuple[str, int]] = Counter()
        self._last_turn = 0
        self._hits: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()

    def now(self) -> float:
        """The store's own clock, in unix seconds."""
        return check_time("clock", self._clock())

    def _change_job(self, job_id: str, *, now: int | None = None, **changes: object) -> None:
        """Change columns of a job; ``now`` sets its lease, exactly."""
        if now is not None:
            changes["lease"] = now
        self._jobs[job_id] = replace(self._jobs[job_id], **changes)  # type: ignore[arg-type]

    def _set_target_status(self, job_id: str, idx: int, status: TargetStatus) -> None:
        """Start a target, or take it back; its texts and the counters stay as they are."""
        targets = self._targets[job_id]
        targets[idx] = replace(targets[idx], status=status)

    def _store_target(self, new: BatchTarget, *, now: int) -> None:
        """Write a target; the job's counters change by the difference (design.md section 3)."""
        old = self._targets[new.job_id][new.idx]
        job = self._jobs[new.job_id]
        self._targets[new.job_id][new.idx] = new
        self._change_job(
            new.job_id,
            now=now,
            targets_done=job.targets_done + new.status.finished - old.status.finished,
            nbytes=job.nbytes + stored_bytes(new.result) - stored_bytes(old.result),
        )

    def _fresh_turn(self) -> int:
        """A number higher than any before: the end of the rotation."""
        self._last_turn += 1
        return self._last_turn

    def _move_on(self, job_id: str, *, now: int) -> Settled | None:
        """After its next target was stored: a live job's next turn, or its end after the last."""
        targets = self._targets[job_id].values()
        unfinished = [target.idx for target in targets if not target.status.finished]
        if not unfinished:
            failed = sum(target.status is TargetStatus.FAILED for target in targets)
            return self._end(job_id, status_of_finished(len(targets), failed), now=now)
        turn = self._turns[job_id]
        turn.turn, turn.next_idx = self._fresh_turn(), min(unfinished)
        turn.ready_at, turn.busy_since = AT_ONCE, None
        return None

    def _end(self, job_id: str, status: JobStatus, *, now: int, error: str = "") -> Settled:
        """Give a live job its terminal status; its turn stays only while its target is held."""
        self._change_job(job_id, now=now, status=status, error=error)
        turn = self._turns.get(job_id)
        if turn is not None and turn.token is None:
            del self._turns[job_id]
        return Settled(job_id, status, self._jobs[job_id].created_at)

    def _take_back(self, job_id: str, *, now: int, ready_at: int = AT_ONCE) -> None:
        """The target in flight is pending again: at the end of the rotation if the job lives."""
        turn = self._turns[job_id]
        self._set_target_status(job_id, turn.next_idx, TargetStatus.PENDING)
        turn.let_go()
        self._change_job(job_id, now=now)
        if self._jobs[job_id].status.terminal:
            del self._turns[job_id]
        else:
            turn.turn, turn.ready_at = self._fresh_turn(), ready_at

    def _forget(self, job_id: str) -> None:
        """Delete a job with all that belongs to it."""
        del self._jobs[job_id]
        for idx in self._targets.pop(job_id):
            self._starts.pop((job_id, idx), None)
            self._losses.pop((job_id, idx), None)
        self._turns.pop(job_id, None)

    def _newest_with_key(self, caller: str, key: str, *, now: int, ttl: int) -> BatchJob | None:
        """The newest job that answers the key, until ``lease + ttl <= now`` (spec/seed-001)."""
        found = [
            job
            for job in self._jobs.values()
            if (job.caller, job.idem_key) == (caller, key)
            and job.status in KEY_STATUSES
            and job.lease + ttl > now
        ]
        return max(found, key=lambda job: (job.created_at, job.id), default=None)

    def _count_live(self, caller: str | None = None) -> int:
        return sum(job.status.live and caller in {None, job.caller} for job in self._jobs.values())

    def _total_bytes(self) -> int:
        return sum(job.nbytes for job in self._jobs.values())

    def _evict(self, max_bytes: int, *, limit: int | None, keep: frozenset[str]) -> int:
        """Delete finished jobs, oldest lease first, until the total fits (spec/seed-000, 5)."""
        finished = [job for job in self._jobs.values() if job.status.terminal]
        oldest_first = sorted(finished, key=lambda job: (job.lease, job.id))
        evicted = 0
        for job in [job for job in oldest_first if job.id not in keep][:limit]:
            if self._total_bytes() <= max_bytes:
                break
            self._forget(job.id)
            evicted += 1
        return evicted
