"""The JobStore half of the MemoryStore: what a runner asks of a store (design.md section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from batchmill.errors import (
    Busy,
    CallerBusy,
    InvalidInput,
    JobExists,
    NoTargets,
    SubmitRejected,
    TooManyTargets,
)
from batchmill.record_checks import (
    check_limits,
    check_outcomes,
    check_submission,
    check_tokens,
)
from batchmill.records import (
    Admission,
    BatchJob,
    BatchTarget,
    Exchange,
    Held,
    JobStatus,
    Limits,
    Outcome,
    Released,
    Settled,
)
from batchmill.testing.memory_rotation import MemoryRotation, Report
from batchmill.testing.memory_state import Turn
from batchmill.validation import (
    check_callable,
    check_count,
    check_duration,
    check_flag,
    check_id,
    check_max_bytes,
    check_name,
    check_seconds,
    check_ttl,
    to_ms,
)


class MemoryJobs(MemoryRotation):
    """What a runner asks of a store (``batchmill.runner.JobStore``)."""

    def submit_job(
        self,
        job: BatchJob,
        targets: Sequence[BatchTarget],
        *,
        queue: str,
        home: str | None,
        limits: Limits,
        now: float,
        ttl: timedelta,
        within: Any = None,
    ) -> Admission:
        """Answer with the job that has the key, or store this one with its turn, or reject it.

        In this order: no targets; the lookup (a hit sets that job's lease); the caps; the store.
        """
        if within is not None:
            raise InvalidInput("within: a MemoryStore has no transaction to join; leave it out")
        job, new = check_submission(job, targets)
        queue = check_name("queue", queue, least=1)
        if home is not None:
            home = check_id("home", home)
        limits, lease = check_limits(limits), check_seconds("now", now)
        ttl_seconds = check_ttl("ttl", ttl)
        with self._lock:
            same = self._newest_with_key(job.caller, job.idem_key, now=lease, ttl=ttl_seconds)
            if new and same is not None:
                self._change_job(same.id, now=lease)
                return Admission(same.id, reused=True, rejected=None)
            rejected = self._rejection(job.caller, len(new), limits)
            if rejected is not None:
                return Admission(None, reused=False, rejected=rejected)
            if job.id in self._jobs:
                raise JobExists("job.id: a job of this id is already stored; choose another id")
            self._jobs[job.id] = job
            self._targets[job.id] = {target.idx: target for target in new}
            self._turns[job.id] = Turn(self._fresh_turn(), next_idx=0, queue=queue, home=home)
            if home is not None:
                _, hold_for = self._runners.get(home, (0, 0))
                self._runners[home] = to_ms(now), hold_for
            return Admission(job.id, reused=False, rejected=None)

    def exchange(
        self,
        runner_id: str,
        outcomes: Sequence[Outcome],
        *,
        queue: str,
        want: int,
        shared: bool,
        now: float,
        hold_for: float,
        max_bytes: int,
    ) -> Exchange:
        """Store what finished, settle jobs, keep the byte budget, claim up to ``want`` targets.

        A job settled here is not evicted here.
        """
        runner_id = check_id("runner_id", runner_id)
        queue = check_name("queue", queue, least=1)
        want = check_count("want", want)
        check_seconds("now", now)
        check_duration("hold_for", hold_for)
        check_max_bytes("max_bytes", max_bytes)
        checked = check_outcomes(outcomes)
        check_flag("shared", shared)
        with self._lock:
            report = Report()
            for outcome in checked:
                self._take_outcome(outcome, report, runner_id, queue, now)
            if report.stored:
                settled_here = frozenset(settled.job_id for settled in report.settled)
                self._evict(max_bytes, limit=None, keep=settled_here)
            claims, next_ready_at = self._claim_next(
                runner_id, queue, want, shared=shared, now=now, hold_for=hold_for
            )
            return Exchange(
                claims=claims,
                stored=report.stored,
                refused=report.refused,
                unstorable=report.unstorable,
                settled=report.settled,
                cancelled=self._cancelled_in_flight(runner_id, queue),
                next_ready_at=next_ready_at,
            )

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        """Say that the runner is alive; renew these holds, and the leases of their jobs."""
        runner_id = check_id("runner_id", runner_id)
        tokens = check_tokens(tokens)
        lease, hold_ms = check_seconds("now", now), to_ms(check_duration("hold_for", hold_for))
        with self._lock:
            self._runners[runner_id] = to_ms(now), hold_ms
            held = {
                turn.token: job_id
                for job_id, turn in self._turns.items()
                if turn.token in tokens and turn.holder == runner_id
            }
            for job_id in held.values():
                self._turns[job_id].held_until = to_ms(now) + hold_ms
                self._change_job(job_id, now=lease)
            return Held(
                lost=[token for token in tokens if token not in held],
                cancelled=[job_id for job_id in held.values() if not self._lives(job_id)],
            )

    def leave(self, runner_id: str) -> None:
        """Say that the runner has ended in order: its local jobs count as lost from now on."""
        runner_id = check_id("runner_id", runner_id)
        with self._lock:
            self._runners.pop(runner_id, None)

    def release_lost(
        self, *, now: float, hold_for: float, max_attempts: int, limit: int
    ) -> Released:
        """Put back what lost runners had in flight, and fail the local jobs of runners not seen.

        At most ``limit`` jobs are looked at in one call. The ``max_attempts``-th loss of a
        target stores it as failed ("runner lost").
        """
        check_seconds("now", now)
        hold_ms = to_ms(check_duration("hold_for", hold_for))
        max_attempts = check_count("max_attempts", max_attempts, least=1)
        limit = check_count("limit", limit)
        with self._lock:
            report = Report()
            lost = [
                (turn.turn, job_id)
                for job_id, turn in self._turns.items()
                if self._is_lost(turn, to_ms(now), hold_ms)
            ]
            for _, job_id in sorted(lost)[:limit]:
                self._release(job_id, report, now, hold_ms, max_attempts)
            self._forget_lost_runners(to_ms(now), hold_ms)
            return Released(report.put_back, report.stored, report.settled)

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        """End a live job as cancelled; None for an unknown or terminal one."""
        job_id = check_id("job_id", job_id)
        lease = check_seconds("now", now)
        with self._lock:
            if job_id not in self._jobs or not self._lives(job_id):
                return None
            return self._end(job_id, JobStatus.CANCELLED, now=lease)

    def subscribe(
        self, wake: Callable[[], None], *, queue: str | None = None
    ) -> AbstractContextManager[Any] | None:
        """None: there is no push, a runner polls."""
        check_callable("wake", wake)
        if queue is not None:
            check_name("queue", queue, least=1)
        return None

    def _rejection(self, caller: str, targets: int, limits: Limits) -> type[SubmitRejected] | None:
        """Which cap a new job of so many targets would break, the first in their order."""
        if targets == 0:
            return NoTargets
        if targets > limits.targets_per_job:
            return TooManyTargets
        if self._count_live(caller) >= limits.jobs_per_caller:
            return CallerBusy
        if self._count_live() >= limits.jobs_total:
            return Busy
        return None
