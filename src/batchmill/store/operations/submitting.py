"""A submit: one atomic step from the lookup to the turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchmill.errors import Busy, CallerBusy, JobExists, NoTargets, SubmitRejected, TooManyTargets
from batchmill.records import Admission, BatchJob, BatchTarget, Limits
from batchmill.store.operations import jobs as job_operations
from batchmill.store.operations.common import number_turn
from batchmill.store.operations.holding import see_runner
from batchmill.store.operations.targets import insert_targets
from batchmill.store.statements import jobs, totals, turns
from batchmill.store.tx import Tx
from batchmill.validation import AT_ONCE


@dataclass(frozen=True, slots=True)
class Submission:
    """One call of ``submit_job``; ``now_ms`` is ``now`` in milliseconds, ``ttl`` is in seconds."""

    job: BatchJob
    targets: Sequence[BatchTarget]
    queue: str
    home: str | None
    limits: Limits
    now: int
    now_ms: int
    ttl: int


def submit(tx: Tx, new: Submission) -> Admission:
    """Reuse, reject or store, in the order of spec/seed-001, rule 1."""
    if not new.targets:
        return Admission(None, False, NoTargets)
    job = new.job
    tx.row(totals.lock_caps)
    known = job_operations.find_job(tx, job.caller, job.idem_key, new.now, new.ttl, current=True)
    if known is not None:
        job_operations.touch_job(tx, known, new.now)
        return Admission(known, True, None)
    rejected = _rejection(tx, new)
    if rejected is not None:
        return Admission(None, False, rejected)
    _store(tx, new)
    return Admission(job.id, False, None)


def _rejection(tx: Tx, new: Submission) -> type[SubmitRejected] | None:
    """The first cap that the job would break."""
    if len(new.targets) > new.limits.targets_per_job:
        return TooManyTargets
    if job_operations.count_live(tx, new.job.caller, current=True) >= new.limits.jobs_per_caller:
        return CallerBusy
    if job_operations.count_live(tx, None, current=True) >= new.limits.jobs_total:
        return Busy
    return None


def _store(tx: Tx, new: Submission) -> None:
    if tx.row(jobs.job_state, job_id=new.job.id) is not None:
        raise JobExists("job.id: a job of this id is already stored; choose another id")
    job_operations.insert_job(tx, new.job)
    insert_targets(tx, new.targets)
    tx.run(
        turns.insert_turn,
        job_id=new.job.id,
        turn=number_turn(tx),
        next_idx=0,
        ready_at=AT_ONCE,
        queue=new.queue,
        home=new.home,
    )
    if new.home is not None:
        see_runner(tx, new.home, new.now_ms, hold_for_ms=None)
