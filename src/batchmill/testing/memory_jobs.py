"""The JobStore half of the MemoryStore: the rotation, holds and fences of design.md section 4."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from batchmill.errors import Busy, CallerBusy, InvalidInput, JobExists, NoTargets, TooManyTargets
from batchmill.records import (
    RUNNER_LOST,
    Admission,
    BatchJob,
    BatchTarget,
    Claim,
    Exchange,
    Held,
    JobStatus,
    Limits,
    Outcome,
    Released,
    Settled,
    TargetStatus,
)
from batchmill.testing.memory_state import MemoryState, Turn
from batchmill.validation import (
    check_count,
    check_duration,
    check_id,
    check_limits,
    check_max_bytes,
    check_name,
    check_optional_text,
    check_outcome,
    check_seconds,
    check_submit,
    check_ttl,
    to_ms,
)


@dataclass(slots=True)
class _Report:
    """What an exchange or a release has done so far."""

    stored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unstorable: list[str] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    put_back: int = 0

    def settle(self, settled: Settled | None) -> None:
        if settled is not None:
            self.settled.append(settled)


class MemoryJobs(MemoryState):
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
        job, new = check_submit(job, targets)
        check_name("queue", queue, least=1)
        if home is not None:
            check_id("home", home)
        limits, lease = check_limits(limits), check_seconds("now", now)
        ttl_seconds = check_ttl("ttl", ttl)
        with self._lock:
            if not new:
                return Admission(None, reused=False, rejected=NoTargets)
            same = self._newest_with_key(job.caller, job.idem_key, now=lease, ttl=ttl_seconds)
            if same is not None:
                self._change_job(same.id, now=lease)
                return Admission(same.id, reused=True, rejected=None)
            if len(new) > limits.targets_per_job:
                return Admission(None, reused=False, rejected=TooManyTargets)
            if self._count_live(job.caller) >= limits.jobs_per_caller:
                return Admission(None, reused=False, rejected=CallerBusy)
            if self._count_live() >= limits.jobs_total:
                return Admission(None, reused=False, rejected=Busy)
            if job.id in self._jobs:
                raise JobExists("a job of this id is already stored")
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
        check_id("runner_id", runner_id)
        check_name("queue", queue, least=1)
        check_count("want", want)
        check_seconds("now", now)
        check_duration("hold_for", hold_for)
        check_max_bytes("max_bytes", max_bytes)
        checked = [check_outcome(outcome) for outcome in outcomes]
        with self._lock:
            report = _Report()
            for outcome in checked:
                self._take_outcome(outcome, report, now)
            if report.stored:
                settled_here = frozenset(settled.job_id for settled in report.settled)
                self._evict(max_bytes, limit=None, keep=settled_here)
            mine = [
                job_id
                for job_id, turn in self._turns.items()
                if turn.queue == queue
                and (turn.home == runner_id or (shared and turn.home is None))
                and turn.token is None
            ]
            ready = [job_id for job_id in mine if self._turns[job_id].ready_at <= to_ms(now)]
            ready.sort(key=lambda job_id: (self._turns[job_id].turn, job_id))
            claims = [self._claim(job_id, runner_id, now, hold_for) for job_id in ready[:want]]
            waiting = [self._turns[job_id].ready_at for job_id in mine if job_id not in ready]
            return Exchange(
                claims=claims,
                stored=report.stored,
                refused=report.refused,
                unstorable=report.unstorable,
                settled=report.settled,
                cancelled=self._cancelled_in_flight(runner_id, queue),
                next_ready_at=min(waiting) / 1000 if waiting and len(claims) < want else None,
            )

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        """Say that the runner is alive; renew these holds, and the leases of their jobs."""
        check_id("runner_id", runner_id)
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
        check_id("runner_id", runner_id)
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
        check_count("max_attempts", max_attempts, least=1)
        check_count("limit", limit)
        with self._lock:
            report = _Report()
            lost = [
                job_id
                for job_id, turn in self._turns.items()
                if self._home_lost(turn, to_ms(now), hold_ms) or _hold_lapsed(turn, to_ms(now))
            ]
            for job_id in sorted(lost)[:limit]:
                self._release(job_id, report, now, hold_ms, max_attempts)
            return Released(report.put_back, report.stored, report.settled)

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        """End a live job as cancelled; None for an unknown or terminal one."""
        check_id("job_id", job_id)
        lease = check_seconds("now", now)
        with self._lock:
            if job_id not in self._jobs or not self._lives(job_id):
                return None
            return self._end(job_id, JobStatus.CANCELLED, now=lease)

    def subscribe(self, wake: Callable[[], None]) -> AbstractContextManager[Any] | None:
        """None: there is no push, a runner polls."""
        del wake

    def _take_outcome(self, outcome: Outcome, report: _Report, now: float) -> None:
        """One outcome, behind its fence: without the current token it changes nothing."""
        turn = self._turns.get(outcome.job_id)
        if turn is None or turn.token is None:
            report.refused.append(outcome.token)
        elif (turn.next_idx, turn.token) != (outcome.idx, outcome.token):
            report.refused.append(outcome.token)
        elif outcome.kind in {"done", "failed"}:
            self._store_outcome(turn, outcome, report, now)
        elif outcome.kind == "fail_job" and self._lives(outcome.job_id):
            error = _storable(outcome).error or ""
            report.settle(self._fail_job(outcome.job_id, error, now))
        elif outcome.kind == "later" and self._lives(outcome.job_id):
            ready_at = to_ms(now if outcome.ready_at is None else outcome.ready_at)
            turn.busy_since = to_ms(now) if turn.busy_since is None else turn.busy_since
            self._take_back(outcome.job_id, now=check_seconds("now", now), ready_at=ready_at)
        else:
            self._take_back(outcome.job_id, now=check_seconds("now", now))

    def _store_outcome(self, turn: Turn, outcome: Outcome, report: _Report, now: float) -> None:
        """Store a done or failed target; a text that no store can hold makes it a failed one."""
        storable = _storable(outcome)
        if storable is not outcome:
            report.unstorable.append(outcome.token)
        report.stored.append(outcome.token)
        report.settle(self._store_held(turn, storable, now))

    def _store_held(self, turn: Turn, outcome: Outcome, now: float) -> Settled | None:
        """Store the target in flight and free its turn; the job's end, if that was its last."""
        lease, job_id = check_seconds("now", now), outcome.job_id
        status = TargetStatus.DONE if outcome.kind == "done" else TargetStatus.FAILED
        new = replace(
            self._targets[job_id][turn.next_idx],
            status=status,
            result=outcome.result,
            error=outcome.error,
            hint=outcome.hint,
        )
        self._store_target(new, now=lease)
        turn.let_go()
        if self._lives(job_id):
            return self._move_on(job_id, now=lease)
        del self._turns[job_id]
        return None

    def _fail_job(self, job_id: str, error: str, now: float) -> Settled:
        """End the whole job as failed; its target in flight, if any, is pending again."""
        turn = self._turns[job_id]
        if turn.token is not None:
            self._set_target_status(job_id, turn.next_idx, TargetStatus.PENDING)
            turn.let_go()
        return self._end(job_id, JobStatus.FAILED, now=check_seconds("now", now), error=error)

    def _claim(self, job_id: str, runner_id: str, now: float, hold_for: float) -> Claim:
        """Start the job's next target for this runner, with a token of its own."""
        turn = self._turns[job_id]
        turn.holder, turn.token = runner_id, secrets.token_hex(16)
        turn.held_until = to_ms(now) + to_ms(hold_for)
        self._starts[job_id, turn.next_idx] += 1
        self._set_target_status(job_id, turn.next_idx, TargetStatus.RUNNING)
        self._change_job(job_id, now=check_seconds("now", now), status=JobStatus.RUNNING)
        job, target = self._jobs[job_id], self._targets[job_id][turn.next_idx]
        return Claim(
            job_id=job_id,
            idx=turn.next_idx,
            token=turn.token,
            attempt=self._starts[job_id, turn.next_idx],
            busy_since=None if turn.busy_since is None else turn.busy_since / 1000,
            caller=job.caller,
            caller_class=job.caller_class,
            url=target.url,
            options=target.options,
        )

    def _release(
        self, job_id: str, report: _Report, now: float, hold_ms: int, max_attempts: int
    ) -> None:
        """What becomes of one job whose runner is lost (design.md section 4)."""
        turn = self._turns[job_id]
        lost = job_id, turn.next_idx
        if not self._lives(job_id):
            self._take_back(job_id, now=check_seconds("now", now))
        elif self._home_lost(turn, to_ms(now), hold_ms):
            report.settle(self._fail_job(job_id, RUNNER_LOST, now))
        elif self._losses[lost] + 1 < max_attempts:
            self._losses[lost] += 1
            self._take_back(job_id, now=check_seconds("now", now))
            report.put_back += 1
        else:
            token = turn.token or ""
            report.stored.append(token)
            failure = Outcome(*lost, token, "failed", error=RUNNER_LOST)
            report.settle(self._store_held(turn, failure, now))

    def _home_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        """True when the only runner that may take it hasn't been seen for too long, or has left."""
        if turn.home is None:
            return False
        if turn.home not in self._runners:
            return True
        seen_at, its_own = self._runners[turn.home]
        return seen_at + max(its_own, hold_ms) <= now_ms

    def _cancelled_in_flight(self, runner_id: str, queue: str) -> list[str]:
        return [
            job_id
            for job_id, turn in self._turns.items()
            if (turn.holder, turn.queue) == (runner_id, queue) and not self._lives(job_id)
        ]

    def _lives(self, job_id: str) -> bool:
        return self._jobs[job_id].status.live


def _hold_lapsed(turn: Turn, now_ms: int) -> bool:
    return turn.token is not None and turn.held_until <= now_ms


def _storable(outcome: Outcome) -> Outcome:
    """The outcome itself, or a failed one that says which of its texts can't be stored."""
    try:
        check_optional_text("result", outcome.result)
        check_optional_text("error", outcome.error)
        check_optional_text("hint", outcome.hint)
    except InvalidInput as unstorable:
        return replace(outcome, kind="failed", result=None, error=str(unstorable), hint=None)
    return outcome
