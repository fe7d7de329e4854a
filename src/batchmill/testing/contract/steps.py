"""Short ways to say what a contract test does; every time in them is an explicit ``now``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from batchmill.records import (
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
    TargetStatus,
)
from batchmill.testing.contract.surface import Repository, Store

T: Final = 1_000_000
"""The unix second that tests begin at."""
HOUR: Final = timedelta(hours=1)
HOLD: Final = 60.0
BIG: Final = 2**40
WIDE: Final = Limits(targets_per_job=10_000, jobs_per_caller=10_000, jobs_total=10_000)

_Result = TypeVar("_Result")


def job_of(
    job_id: str,
    *,
    caller: str = "ada",
    key: str | None = None,
    status: JobStatus = JobStatus.QUEUED,
    total: int = 0,
    created_at: int = T,
    lease: int = T,
    nbytes: int = 0,
) -> BatchJob:
    """A job with plain values; its key is its id unless given."""
    return BatchJob(
        id=job_id,
        caller=caller,
        caller_class="restricted",
        idem_key=job_id if key is None else key,
        status=status,
        targets_total=total,
        created_at=created_at,
        lease=lease,
        nbytes=nbytes,
    )


def targets_of(job_id: str, count: int) -> list[BatchTarget]:
    """Pending targets 0, 1, 2, …, each with a URL and options of its own."""
    return [
        BatchTarget(job_id, idx, f"https://example.org/{job_id}/{idx}", f'{{"pages":"{idx}"}}')
        for idx in range(count)
    ]


def add_job(
    store: Repository,
    job_id: str,
    count: int = 1,
    *,
    lease: int = T,
    status: JobStatus = JobStatus.QUEUED,
) -> None:
    """A job made by hand, with pending targets: it has no turn."""
    store.create_job(job_of(job_id, total=count, lease=lease, status=status))
    store.put_targets(job_id, targets_of(job_id, count))


def add_finished(store: Repository, job_id: str, size: int, *, lease: int) -> None:
    """A done job with one result of so many bytes and that lease."""
    add_job(store, job_id)
    store.update_target(job_id, 0, now=lease, status=TargetStatus.DONE, result="x" * size)
    store.set_job_status(job_id, JobStatus.DONE, now=lease)


def job_in(store: Repository, job_id: str) -> BatchJob:
    """The job, which must be there."""
    job = store.get_job(job_id)
    assert job is not None, f"job {job_id} is gone"
    return job


def targets_in(store: Repository, job_id: str) -> list[BatchTarget]:
    """The job's targets; the job must be there."""
    targets = store.get_targets(job_id)
    assert targets is not None, f"job {job_id} is gone"
    return targets


def statuses_in(store: Repository, job_id: str) -> list[str]:
    """The statuses of the job's targets, in order."""
    return [target.status.value for target in targets_in(store, job_id)]


def contents_of(store: Repository) -> list[tuple[BatchJob, list[BatchTarget]]]:
    """All that the store shows, to compare before with after."""
    jobs = store.list_jobs(limit=10_000)
    return [(job, targets_in(store, job.id)) for job in jobs]


def assert_counters_true(store: Repository) -> None:
    """Every kept counter equals what the rows say (design.md section 4, property 5)."""
    total = 0
    for job, targets in contents_of(store):
        finished = sum(target.status.finished for target in targets)
        stored = sum(len(target.result.encode()) for target in targets if target.result is not None)
        assert job.targets_done == finished, f"targets_done of {job.id}"
        assert job.nbytes == stored, f"nbytes of {job.id}"
        total += stored
    assert store.nbytes() == total


def race(count: int, act: Callable[[int], _Result]) -> list[_Result]:
    """Call ``act(0)`` … ``act(count - 1)`` from a thread each, all let go at once."""
    barrier = threading.Barrier(count)
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait(timeout=30)
            results[number] = act(number)
        except BaseException as error:  # noqa: BLE001 (raised again below, in the test's thread)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # else a thread is through before the next one has begun
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return [results[number] for number in range(count)]


def done(claim: Claim, result: str = '{"content":"x"}') -> Outcome:
    """The claim's target was fetched."""
    return Outcome(claim.job_id, claim.idx, claim.token, "done", result=result)


def failed(claim: Claim, error: str = "not found", hint: str | None = None) -> Outcome:
    """The claim's target failed."""
    return Outcome(claim.job_id, claim.idx, claim.token, "failed", error=error, hint=hint)


def later(claim: Claim, ready_at: float) -> Outcome:
    """The claim's target was only busy."""
    return Outcome(claim.job_id, claim.idx, claim.token, "later", ready_at=ready_at)


def put_back(claim: Claim) -> Outcome:
    """The claim's target was not tried after all."""
    return Outcome(claim.job_id, claim.idx, claim.token, "put_back")


def fail_job(claim: Claim, error: str) -> Outcome:
    """The claim's whole job can't go on."""
    return Outcome(claim.job_id, claim.idx, claim.token, "fail_job", error=error)


@dataclass(frozen=True, slots=True)
class Steps:
    """What runners do to one store; ``now`` is T unless given."""

    store: Store

    def submit(
        self,
        job_id: str,
        count: int = 1,
        *,
        caller: str = "ada",
        key: str | None = None,
        queue: str = "default",
        home: str | None = None,
        limits: Limits = WIDE,
        now: float = T,
        ttl: timedelta = HOUR,
    ) -> Admission:
        """Submit a job of so many targets; its key is its id unless given."""
        job = job_of(
            job_id, caller=caller, key=key, total=count, created_at=int(now), lease=int(now)
        )
        return self.store.submit_job(
            job, targets_of(job_id, count), queue=queue, home=home, limits=limits, now=now, ttl=ttl
        )

    def exchange(
        self,
        *outcomes: Outcome,
        want: int = 0,
        runner: str = "r1",
        queue: str = "default",
        shared: bool = True,
        now: float = T,
        hold_for: float = HOLD,
        max_bytes: int = BIG,
    ) -> Exchange:
        """Hand in outcomes and ask for up to ``want`` claims; every sequence comes as a list."""
        answer = self.store.exchange(
            runner,
            outcomes,
            queue=queue,
            want=want,
            shared=shared,
            now=now,
            hold_for=hold_for,
            max_bytes=max_bytes,
        )
        return Exchange(
            list(answer.claims),
            list(answer.stored),
            list(answer.refused),
            list(answer.unstorable),
            list(answer.settled),
            list(answer.cancelled),
            answer.next_ready_at,
        )

    def claim(self, *, runner: str = "r1", now: float = T, hold_for: float = HOLD) -> Claim:
        """The one next target, which must be there."""
        claims = self.exchange(want=1, runner=runner, now=now, hold_for=hold_for).claims
        assert len(claims) == 1, "nothing could be claimed"
        return claims[0]

    def retry(self, outcome: Outcome, *, now: float = T) -> Claim:
        """Hand in what leaves a target pending, then take the next target, its own or another's.

        Whether the same exchange may hand out what it put back is left to the store.
        """
        self.exchange(outcome, now=now)
        return self.claim(now=now)

    def hold(
        self, *tokens: str, runner: str = "r1", now: float = T, hold_for: float = HOLD
    ) -> Held:
        """Renew holds."""
        held = self.store.hold(runner, tokens, now=now, hold_for=hold_for)
        return Held(list(held.lost), list(held.cancelled))

    def drain(self, *, now: float = T, limit: int = 1000) -> list[tuple[str, int]]:
        """Let one worker finish everything; what it claimed, in order."""
        order: list[tuple[str, int]] = []
        outcomes: Sequence[Outcome] = ()
        for _ in range(limit):
            claims = self.exchange(*outcomes, want=1, now=now).claims
            if not claims:
                return order
            order.append((claims[0].job_id, claims[0].idx))
            outcomes = [done(claims[0])]
        raise AssertionError(f"still not drained after {limit} claims")

    def release(
        self, *, now: float, hold_for: float = HOLD, max_attempts: int = 3, limit: int = 100
    ) -> Released:
        """Look for lost runners."""
        released = self.store.release_lost(
            now=now, hold_for=hold_for, max_attempts=max_attempts, limit=limit
        )
        return Released(released.put_back, list(released.failed), list(released.settled))
