"""A submit: one atomic step from the lookup to the turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from batchmill.errors import (
    Busy,
    CallerBusy,
    InvalidInput,
    JobExists,
    NoTargets,
    SubmitRejected,
    TooManyTargets,
)
from batchmill.records import Admission, BatchJob, BatchTarget, Limits
from batchmill.store.operations import jobs as job_operations
from batchmill.store.operations.common import number_turn, total_is_missing
from batchmill.store.operations.holding import noting_runner, see_runner
from batchmill.store.operations.targets import inserting_pending
from batchmill.store.statements import jobs, totals, turns
from batchmill.store.tx import Row, Tx, call
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
    seen = _look(tx, new)
    # Gone meanwhile where nothing has locked it: an eviction may end between look and touch.
    if seen.known is not None and tx.run(jobs.touch_job, job_id=seen.known, lease=new.now):
        return Admission(seen.known, True, None)
    rejected = _rejection(seen, new)
    if rejected is not None:
        return Admission(None, False, rejected)
    if seen.taken:
        raise JobExists("job.id: a job of this id is already stored; choose another id")
    _store(tx, new, seen.turn)
    return Admission(new.job.id, False, None)


class _Seen(NamedTuple):
    """What was read once no other submit could come between.

    ``known`` answers the key; ``turn`` is None where it is not of a sequence.
    """

    known: str | None
    of_caller: int
    of_all: int
    taken: bool
    turn: int | None


def _look(tx: Tx, new: Submission) -> _Seen:
    """Lock the caps, then read all at once: where the database is far, that is one round trip."""
    job = new.job
    key = {"caller": job.caller, "idem_key": job.idem_key, "expired": new.now - new.ttl}
    calls = [
        call(jobs.job_by_key, True, **key),
        call(jobs.count_live, True, True, caller=job.caller),
        call(jobs.count_live, False, True),
        call(jobs.job_state, job_id=job.id),
    ]
    if tx.can.sequences:
        calls.append(call(turns.fresh_number))
    caps = [call(totals.lock_caps)] if tx.can.row_locks else []
    found = tx.rows_of(*caps, *calls)
    if caps:
        _check_level(found.pop(0))
    known, of_caller, of_all, state, *number = found
    return _Seen(
        known=known[0][0] if known else None,
        of_caller=of_caller[0][0],
        of_all=of_all[0][0],
        taken=bool(state),
        turn=number[0][0][0] if number else None,
    )


def _check_level(caps: Sequence[Row]) -> None:
    """Refuse a transaction that can't see what was committed since it began (design.md 3)."""
    if not caps:
        raise total_is_missing()
    level = caps[0][0]
    if level in ("repeatable read", "serializable"):
        raise InvalidInput(
            f"within: its transaction is {level.upper()}, in which the caps can't be exact; begin "
            'it as READ COMMITTED, for one with execution_options(isolation_level="READ COMMITTED")'
        )


def _rejection(seen: _Seen, new: Submission) -> type[SubmitRejected] | None:
    """The first cap that the job would break."""
    if len(new.targets) > new.limits.targets_per_job:
        return TooManyTargets
    if seen.of_caller >= new.limits.jobs_per_caller:
        return CallerBusy
    if seen.of_all >= new.limits.jobs_total:
        return Busy
    return None


def _store(tx: Tx, new: Submission, turn: int | None) -> None:
    """The job, its targets and its turn."""
    writes = [
        job_operations.inserting(new.job),
        *inserting_pending(tx, new.targets),
        call(
            turns.insert_turn,
            job_id=new.job.id,
            turn=number_turn(tx) if turn is None else turn,
            next_idx=0,
            ready_at=AT_ONCE,
            queue=new.queue,
            home=new.home,
        ),
    ]
    at_once = new.home is None or tx.can.upserts
    if new.home is not None and at_once:
        writes.append(noting_runner(new.home, new.now_ms, hold_for_ms=None))
    tx.conclude(writes, (), last=at_once)
    if new.home is not None and not at_once:
        see_runner(tx, new.home, new.now_ms, hold_for_ms=None)
