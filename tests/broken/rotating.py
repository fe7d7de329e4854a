"""Faults of the rotation, of waiting, of submits and caps."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from batchmill.errors import SubmitRejected
from batchmill.records import KEY_STATUSES, Admission, BatchJob, Claim, JobStatus, Limits, Settled
from batchmill.testing import MemoryStore
from tests.broken.registry import in_memory


class LastInFirstOut(MemoryStore):
    """The youngest turn goes next."""

    def _fresh_turn(self) -> int:
        return -super()._fresh_turn()


class KeepsItsTurn(MemoryStore):
    """A job goes on until it is done; the others wait."""

    def _move_on(self, job_id: str, *, now: int) -> Settled | None:
        place = self._turns[job_id].turn
        settled = super()._move_on(job_id, now=now)
        if settled is None:
            self._turns[job_id].turn = place
        return settled


class PutsBackToTheFront(MemoryStore):
    """What comes back goes next."""

    def _take_back(self, job_id: str, **given: Any) -> None:
        place = self._turns[job_id].turn
        super()._take_back(job_id, **given)
        if job_id in self._turns:
            self._turns[job_id].turn = place


class ById(MemoryStore):
    """Turns go by the jobs' ids."""

    def _claim_next(self, *args: Any, **given: Any) -> tuple[list[Claim], float | None]:
        for place, job_id in enumerate(sorted(self._turns)):
            self._turns[job_id].turn = place
        return super()._claim_next(*args, **given)


class TwoInFlight(MemoryStore):
    """The target after the one in flight can be claimed as well."""

    def _claim_next(
        self, runner_id: str, queue: str, want: int, **given: Any
    ) -> tuple[list[Claim], float | None]:
        held = {job_id: turn for job_id, turn in self._turns.items() if turn.token is not None}
        for job_id, turn in held.items():
            if turn.next_idx + 1 in self._targets[job_id]:
                self._turns[job_id] = replace(turn, token=None, next_idx=turn.next_idx + 1)
        answer = super()._claim_next(runner_id, queue, want, **given)
        for job_id, turn in held.items():
            if self._turns[job_id].token is None:
                self._turns[job_id] = turn
        return answer


class IgnoresQueues(MemoryStore):
    """A runner takes from any queue."""

    def _claim_next(
        self, runner_id: str, queue: str, want: int, **given: Any
    ) -> tuple[list[Claim], float | None]:
        for turn in self._turns.values():
            turn.queue = queue
        return super()._claim_next(runner_id, queue, want, **given)


class IgnoresHomes(MemoryStore):
    """A runner that shares takes the jobs of other homes too."""

    def _claim_next(
        self, runner_id: str, queue: str, want: int, **given: Any
    ) -> tuple[list[Claim], float | None]:
        homes = {job_id: turn.home for job_id, turn in self._turns.items()}
        for turn in self._turns.values():
            turn.home = None
        answer = super()._claim_next(runner_id, queue, want, **given)
        for job_id, turn in self._turns.items():
            turn.home = homes[job_id]
        return answer


class DoesNotWait(MemoryStore):
    """A target is tried again at once, whatever ready_at says."""

    def _take_back(self, job_id: str, *, now: int, ready_at: int = 0) -> None:
        super()._take_back(job_id, now=now)


class TellsNoTime(MemoryStore):
    """An exchange doesn't say when the next waiting target is ready."""

    def _claim_next(self, *args: Any, **given: Any) -> tuple[list[Claim], float | None]:
        claims, _ = super()._claim_next(*args, **given)
        return claims, None


class ForgetsBusy(MemoryStore):
    """A put-back forgets since when the target has been busy."""

    def _take_back(self, job_id: str, **given: Any) -> None:
        if "ready_at" not in given:
            self._turns[job_id].busy_since = None
        super()._take_back(job_id, **given)


class BusyAnew(MemoryStore):
    """Every busy outcome begins the time of being busy anew."""

    def _take_back(self, job_id: str, **given: Any) -> None:
        if "ready_at" in given:
            self._turns[job_id].busy_since = given["now"] * 1000
        super()._take_back(job_id, **given)


class BusyForTheNext(MemoryStore):
    """The next target inherits since when the one before it was busy."""

    def _move_on(self, job_id: str, *, now: int) -> Settled | None:
        busy_since = self._turns[job_id].busy_since
        settled = super()._move_on(job_id, now=now)
        if settled is None:
            self._turns[job_id].busy_since = busy_since
        return settled


class CountsNoAttempts(MemoryStore):
    """Every attempt is the first."""

    def _claim(self, job_id: str, runner_id: str, now: float, hold_for: float) -> Claim:
        return replace(super()._claim(job_id, runner_id, now, hold_for), attempt=1)


class AlwaysDone(MemoryStore):
    """A job with a failed target is done all the same."""

    def _end(self, job_id: str, status: JobStatus, *, now: int, error: str = "") -> Settled:
        if status is JobStatus.PARTIAL:
            status = JobStatus.DONE
        return super()._end(job_id, status, now=now, error=error)


class SharedKey(MemoryStore):
    """A key answers any caller."""

    def _newest_with_key(self, caller: str, key: str, *, now: int, ttl: int) -> BatchJob | None:
        found = super()._newest_with_key
        callers = {caller, *(job.caller for job in self._jobs.values())}
        answers = (found(each, key, now=now, ttl=ttl) for each in sorted(callers))
        return next((job for job in answers if job is not None), None)


class FailedAnswers(MemoryStore):
    """A failed job answers its key."""

    def _newest_with_key(self, caller: str, key: str, *, now: int, ttl: int) -> BatchJob | None:
        before = dict(self._jobs)
        for job_id, job in before.items():
            if job.status not in KEY_STATUSES:
                self._jobs[job_id] = replace(job, status=JobStatus.DONE)
        found = super()._newest_with_key(caller, key, now=now, ttl=ttl)
        self._jobs = before
        return found


class KeyNeverEnds(MemoryStore):
    """A key answers as long as its job is kept."""

    def _newest_with_key(self, caller: str, key: str, *, now: int, ttl: int) -> BatchJob | None:
        return super()._newest_with_key(caller, key, now=-(10**12), ttl=ttl)


class ReuseKeepsTheLease(MemoryStore):
    """A reused submit leaves the lease."""

    def submit_job(self, *args: Any, **given: Any) -> Admission:
        leases = {job_id: job.lease for job_id, job in self._jobs.items()}
        admission = super().submit_job(*args, **given)
        if admission.reused and admission.job_id is not None:
            self._change_job(admission.job_id, now=leases[admission.job_id])
        return admission


class CapsFirst(MemoryStore):
    """The caps are looked at before the key."""

    def submit_job(self, job: Any, targets: Any, *, limits: Limits, **given: Any) -> Admission:
        rejected = self._rejection(job.caller, len(targets), limits)
        if rejected is not None:
            return Admission(None, reused=False, rejected=rejected)
        return super().submit_job(job, targets, limits=limits, **given)


class _OffByOne(MemoryStore):
    """One cap lets one more in."""

    cap = ""

    def _rejection(self, caller: str, targets: int, limits: Limits) -> type[SubmitRejected] | None:
        more: Any = {self.cap: getattr(limits, self.cap) + 1}
        return super()._rejection(caller, targets, replace(limits, **more))


class OneTargetMore(_OffByOne):
    cap = "targets_per_job"


class OneJobMore(_OffByOne):
    cap = "jobs_per_caller"


class OneJobMoreInAll(_OffByOne):
    cap = "jobs_total"


class CountsTurns(MemoryStore):
    """The caps count the rotation, not statuses: a cancelled job in flight, no job by hand."""

    def _count_live(self, caller: str | None = None) -> int:
        callers = [self._jobs[job_id].caller for job_id in self._turns]
        return sum(caller in {None, each} for each in callers)


class ChecksThenInserts(MemoryStore):
    """The lookup and the store of a submit are two steps, and others come between."""

    def submit_job(self, job: Any, targets: Any, **given: Any) -> Admission:
        same = self.find_job_by_idem_key(
            job.caller, job.idem_key, now=given["now"], ttl=given["ttl"]
        )
        if same is not None or not targets:
            return super().submit_job(job, targets, **given)
        time.sleep(0.0001)
        admission = super().submit_job(replace(job, idem_key=job.id), targets, **given)
        if admission.job_id is not None:
            self._change_job(job.id, idem_key=job.idem_key)
        return admission


STORES = [
    in_memory("last in, first out", LastInFirstOut, "Rotation"),
    in_memory("a job keeps its turn", KeepsItsTurn, "Rotation"),
    in_memory("what is put back goes first", PutsBackToTheFront, "Rotation"),
    in_memory("turns go by id", ById, "Rotation"),
    in_memory("two targets of a job in flight", TwoInFlight, "Serial"),
    in_memory("queues are ignored", IgnoresQueues, "Queues"),
    in_memory("homes are ignored", IgnoresHomes, "Queues"),
    in_memory("retry-later doesn't wait", DoesNotWait, "Waiting"),
    in_memory("nobody says when to come back", TellsNoTime, "Waiting"),
    in_memory("a put-back loses busy_since", ForgetsBusy, "BusySince"),
    in_memory("busy_since begins anew", BusyAnew, "BusySince"),
    in_memory("the next target inherits busy_since", BusyForTheNext, "BusySince"),
    in_memory("attempts are not counted", CountsNoAttempts, "Claims"),
    in_memory("a failed target is overlooked", AlwaysDone, "Settling"),
    in_memory("a key is shared across callers", SharedKey, "Submitting"),
    in_memory("a failed job answers a key", FailedAnswers, "Submitting"),
    in_memory("a key never ends", KeyNeverEnds, "Submitting"),
    in_memory("a reused submit leaves the lease", ReuseKeepsTheLease, "Submitting"),
    in_memory("caps come before the key", CapsFirst, "Submitting"),
    in_memory("a key is looked up, then stored", ChecksThenInserts, "SubmitRaces"),
    in_memory("targets_per_job is off by one", OneTargetMore, "Caps"),
    in_memory("jobs_per_caller is off by one", OneJobMore, "Caps"),
    in_memory("jobs_total is off by one", OneJobMoreInAll, "Caps"),
    in_memory("caps count turns, not statuses", CountsTurns, "Caps"),
]
