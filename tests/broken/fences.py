"""Faults of fences, holds and cancels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from batchmill.records import Claim, Held, JobStatus, Outcome, Released, Settled
from batchmill.testing import MemoryStore
from batchmill.testing.memory_rotation import Report
from batchmill.testing.memory_state import Turn
from tests.broken.registry import in_memory


class NoFence(MemoryStore):
    """Whoever names the job in flight may store its target."""

    def _take_outcome(
        self, outcome: Outcome, report: Report, runner_id: str, queue: str, now: float
    ) -> None:
        turn = self._turns.get(outcome.job_id)
        if turn is not None and turn.token is not None:
            outcome = replace(outcome, idx=turn.next_idx, token=turn.token)
            runner_id, queue = turn.holder or runner_id, turn.queue
        super()._take_outcome(outcome, report, runner_id, queue, now)


class FencedByIndex(MemoryStore):
    """Job, index and holder are the fence, the token isn't looked at."""

    def _take_outcome(
        self, outcome: Outcome, report: Report, runner_id: str, queue: str, now: float
    ) -> None:
        turn = self._turns.get(outcome.job_id)
        if turn is not None and turn.token is not None and turn.next_idx == outcome.idx:
            outcome = replace(outcome, token=turn.token)
        super()._take_outcome(outcome, report, runner_id, queue, now)


class FencedByToken(MemoryStore):
    """The token is the fence wherever it comes from: neither holder nor queue is looked at."""

    def _take_outcome(
        self, outcome: Outcome, report: Report, runner_id: str, queue: str, now: float
    ) -> None:
        turn = self._turns.get(outcome.job_id)
        if turn is not None and turn.token == outcome.token:
            runner_id, queue = turn.holder or runner_id, turn.queue
        super()._take_outcome(outcome, report, runner_id, queue, now)


class OneTokenATarget(MemoryStore):
    """Every attempt of a target has the same token."""

    def _claim(self, job_id: str, runner_id: str, now: float, hold_for: float) -> Claim:
        claim = super()._claim(job_id, runner_id, now, hold_for)
        token = f"{claim.job_id}-{claim.idx}-of-all-attempts"
        self._turns[job_id].token = token
        return replace(claim, token=token)


class RenewsWhatIsLost(MemoryStore):
    """A renewal by an old token extends whatever hold its job has now."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs_of_tokens: dict[str, str] = {}

    def _claim(self, job_id: str, runner_id: str, now: float, hold_for: float) -> Claim:
        claim = super()._claim(job_id, runner_id, now, hold_for)
        self.jobs_of_tokens[claim.token] = job_id
        return claim

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        for token in tokens:
            turn = self._turns.get(self.jobs_of_tokens.get(token, ""))
            if turn is not None and turn.token is not None:
                turn.held_until = int((now + hold_for) * 1000)
        return super().hold(runner_id, tokens, now=now, hold_for=hold_for)


class RenewsForAnybody(MemoryStore):
    """A renewal isn't asked whose hold it is."""

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        for turn in self._turns.values():
            if turn.token in tokens:
                turn.holder = runner_id
        return super().hold(runner_id, tokens, now=now, hold_for=hold_for)


class RenewsNoLease(MemoryStore):
    """A renewal leaves the leases of the jobs in hand alone."""

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        leases = {job_id: job.lease for job_id, job in self._jobs.items()}
        held = super().hold(runner_id, tokens, now=now, hold_for=hold_for)
        for job_id, lease in leases.items():
            self._change_job(job_id, now=lease)
        return held


class CancelDropsTheTurn(MemoryStore):
    """A cancel deletes the turn that is in flight, so that its outcome is refused."""

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        settled = super().cancel_job(job_id, now=now)
        if settled is not None:
            self._turns.pop(job_id, None)
        return settled


class CancelIsForgotten(MemoryStore):
    """The store of the last target gives a cancelled job another status."""

    def _store_held(self, turn: Turn, outcome: Outcome, now: float) -> Settled | None:
        cancelled = not self._lives(outcome.job_id)
        settled = super()._store_held(turn, outcome, now)
        unfinished = [t for t in self._targets[outcome.job_id].values() if not t.status.finished]
        if cancelled and not unfinished:
            self._change_job(outcome.job_id, status=JobStatus.DONE)
        return settled


class CancelsTwice(MemoryStore):
    """A job that has ended can be cancelled."""

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        if job_id not in self._jobs:
            return None
        return self._end(job_id, JobStatus.CANCELLED, now=int(now))


class NeverGivesUp(MemoryStore):
    """A target is put back however often its runner was lost."""

    def release_lost(self, **given: Any) -> Released:
        return super().release_lost(**(given | {"max_attempts": 2**31 - 1}))


class CountsEveryStartAsLoss(MemoryStore):
    """Retries and put-backs use up the attempts that only lost runners should."""

    def _claim(self, job_id: str, runner_id: str, now: float, hold_for: float) -> Claim:
        claim = super()._claim(job_id, runner_id, now, hold_for)
        self._losses[job_id, claim.idx] = claim.attempt - 1
        return claim


class ReleasesTooSoon(MemoryStore):
    """Who asks decides how long a hold lasts, whatever was promised at the claim."""

    def _is_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        return turn.token is not None or super()._is_lost(turn, now_ms, hold_ms)


class FailsEveryHome(MemoryStore):
    """A release fails all local jobs as soon as one home is lost."""

    def _home_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        lost = (self._runner_lost(runner_id, now_ms, hold_ms) for runner_id in self._runners)
        return turn.home is not None and any(lost)


class PutsBackEveryHome(MemoryStore):
    """A release that finds a lost home moves the waiting jobs of the others too."""

    def _is_lost(self, turn: Turn, now_ms: int, hold_ms: int) -> bool:
        lost = (self._runner_lost(runner_id, now_ms, hold_ms) for runner_id in self._runners)
        return any(lost) and turn.home is not None


class TellsNoCancel(MemoryStore):
    """An exchange doesn't say which jobs in flight were cancelled."""

    def _cancelled_in_flight(self, runner_id: str, queue: str) -> list[str]:
        return []


class MarksWithoutTheRotation(MemoryStore):
    """The marking at a start leaves the turns, so that late outcomes are stored."""

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int:
        turns = dict(self._turns)
        count = super().mark_in_flight_failed(reason, now=now)
        self._turns.update(turns)
        return count


STORES = [
    in_memory("no fence", NoFence, "Fences"),
    in_memory("fence by job and index only", FencedByIndex, "Fences"),
    in_memory("a token serves any runner and queue", FencedByToken, "Fences"),
    in_memory("one token for all attempts", OneTokenATarget, "Fences", "Claims"),
    in_memory("a lost token renews", RenewsWhatIsLost, "Fences", "Holding"),
    in_memory("anybody's renewal takes a hold over", RenewsForAnybody, "Fences", "Holding"),
    in_memory("a renewal leaves the lease", RenewsNoLease, "Holding"),
    in_memory("a cancel drops the turn in flight", CancelDropsTheTurn, "Cancelling"),
    in_memory("cancelled is overwritten", CancelIsForgotten, "Cancelling"),
    in_memory("an ended job can be cancelled", CancelsTwice, "Cancelling"),
    in_memory("release never fails a target", NeverGivesUp, "Losing"),
    in_memory("every start counts as a loss", CountsEveryStartAsLoss, "Losing"),
    in_memory("release takes standing holds", ReleasesTooSoon, "Losing"),
    in_memory("release fails homes that are seen", FailsEveryHome, "Homes"),
    in_memory("release moves jobs of other homes", PutsBackEveryHome, "Homes"),
    in_memory("cancelled jobs are not told", TellsNoCancel, "Cancelling"),
    in_memory("marking leaves the rotation", MarksWithoutTheRotation, "MarkingSubmitted"),
]
