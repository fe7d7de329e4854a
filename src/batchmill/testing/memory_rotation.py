"""The rotation, holds and fences: the steps that the JobStore half is made of."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace

from batchmill.record_checks import storable
from batchmill.records import (
    RUNNER_LOST,
    Claim,
    JobStatus,
    Outcome,
    Settled,
    TargetStatus,
)
from batchmill.testing.memory_state import MemoryState, Turn
from batchmill.validation import check_seconds, to_ms


@dataclass(slots=True)
class Report:
    """What an exchange or a release has done so far."""

    stored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unstorable: list[str] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    put_back: int = 0

    def settle(self, settled: Settled | None) -> None:
        """Note that a job ended, if it did."""
        if settled is not None:
            self.settled.append(settled)


class MemoryRotation(MemoryState):
    """Steps of an exchange and of a release; like all steps they expect lock and checks."""

    def _take_outcome(
        self, outcome: Outcome, report: Report, runner_id: str, queue: str, now: float
    ) -> None:
        """One outcome, behind its fence: without the current token it changes nothing."""
        turn = self._turns.get(outcome.job_id)
        fence = (outcome.idx, outcome.token, runner_id, queue)
        if turn is None or (turn.next_idx, turn.token, turn.holder, turn.queue) != fence:
            report.refused.append(outcome.token)
        elif outcome.kind in {"done", "failed"}:
            self._store_outcome(turn, outcome, report, now)
        elif outcome.kind == "fail_job" and self._lives(outcome.job_id):
            error = storable(outcome).error or ""
            report.settle(self._fail_job(outcome.job_id, error, now))
        elif outcome.kind == "later" and self._lives(outcome.job_id):
            ready_at = to_ms(now if outcome.ready_at is None else outcome.ready_at)
            turn.busy_since = to_ms(now) if turn.busy_since is None else turn.busy_since
            self._take_back(outcome.job_id, now=check_seconds("now", now), ready_at=ready_at)
        else:
            self._take_back(outcome.job_id, now=check_seconds("now", now))

    def _store_outcome(self, turn: Turn, outcome: Outcome, report: Report, now: float) -> None:
        """Store a done or failed target; a text that no store can hold makes it a failed one."""
        to_store = storable(outcome)
        if to_store is not outcome:
            report.unstorable.append(outcome.token)
        report.stored.append(outcome.token)
        report.settle(self._store_held(turn, to_store, now))

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

    def _claim_next(
        self, runner_id: str, queue: str, want: int, *, shared: bool, now: float, hold_for: float
    ) -> tuple[list[Claim], float | None]:
        """Up to ``want`` claims, lowest turn first, and when the next waiting one is ready."""
        free = [
            (turn.turn, job_id)
            for job_id, turn in self._turns.items()
            if turn.queue == queue
            and (turn.home == runner_id or (shared and turn.home is None))
            and turn.token is None
        ]
        ready = [job_id for _, job_id in sorted(free) if self._turns[job_id].ready_at <= to_ms(now)]
        waiting = [self._turns[job_id].ready_at for _, job_id in free if job_id not in ready]
        claims = [self._claim(job_id, runner_id, now, hold_for) for job_id in ready[:want]]
        known = waiting and len(claims) < want
        return claims, min(waiting) / 1000 if known else None

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
        self, job_id: str, report: Report, now: float, hold_ms: int, max_attempts: int
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

    def _is_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        """A hold that lapsed, or a home that is gone.

        A hold that its living home doesn't renew is one that the home knows nothing of: the
        answer to its claim was lost.
        """
        lapsed = turn.token is not None and turn.held_until <= now_ms
        return lapsed or self._home_lost(turn, now_ms, hold_ms)

    def _home_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        """True when the only runner that may take it hasn't been seen for too long, or has left."""
        return turn.home is not None and self._runner_lost(turn.home, now_ms, hold_ms)

    def _runner_lost(self, runner_id: str, now_ms: int, hold_ms: int) -> bool:
        """True of a runner not seen for hold_for, its own or the given, whichever is longer."""
        if runner_id not in self._runners:
            return True
        seen_at, its_own = self._runners[runner_id]
        return seen_at + max(its_own, hold_ms) <= now_ms

    def _forget_lost_runners(self, now_ms: int, hold_ms: int) -> None:
        """A lost runner that no job belongs to is as unknown as one that left."""
        homes = {turn.home for turn in self._turns.values()}
        for runner_id in list(self._runners):
            if runner_id not in homes and self._runner_lost(runner_id, now_ms, hold_ms):
                del self._runners[runner_id]

    def _cancelled_in_flight(self, runner_id: str, queue: str) -> list[str]:
        return [
            job_id
            for job_id, turn in self._turns.items()
            if (turn.holder, turn.queue) == (runner_id, queue) and not self._lives(job_id)
        ]

    def _lives(self, job_id: str) -> bool:
        return self._jobs[job_id].status.live
