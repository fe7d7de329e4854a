"""Jobs: create, look up, list, touch, set their status, cancel."""

from __future__ import annotations

from batchmill.errors import InvalidTransition, JobExists, JobNotFound
from batchmill.records import BatchJob, JobStatus, Settled
from batchmill.store.operations.common import add_bytes, to_job
from batchmill.store.statements import jobs, targets, turns
from batchmill.store.tx import Call, Row, Tx, call
from batchmill.validation import MAX_COUNT


def create_job(tx: Tx, job: BatchJob) -> None:
    """Store a job as given; its ``nbytes`` count in the total."""
    if tx.row(jobs.job_state, job_id=job.id) is not None:
        raise JobExists("job.id: a job of this id is already stored; choose another id")
    tx.run_all(inserting(job))
    if job.nbytes:
        add_bytes(tx, job.nbytes)


def inserting(job: BatchJob) -> Call:
    """What stores the row itself."""
    return call(
        jobs.insert_job,
        id=job.id,
        caller=job.caller,
        caller_class=job.caller_class,
        idem_key=job.idem_key,
        status=job.status.value,
        error=job.error,
        targets_total=job.targets_total,
        targets_done=job.targets_done,
        created_at=job.created_at,
        lease=job.lease,
        nbytes=job.nbytes,
    )


def get_job(tx: Tx, job_id: str) -> BatchJob | None:
    """The job as it stands."""
    row = tx.row(jobs.job_by_id, job_id=job_id)
    return None if row is None else to_job(row)


def touch_and_get_job(tx: Tx, job_id: str, lease: int) -> BatchJob | None:
    """The job with its lease set, in one statement where the database can."""
    if tx.can.update_returning:
        row = tx.row(jobs.touch_and_read_job, job_id=job_id, lease=lease)
        return None if row is None else to_job(row)
    tx.run(jobs.touch_job, job_id=job_id, lease=lease)
    return get_job(tx, job_id)


def find_job(tx: Tx, caller: str, idem_key: str, now: int, ttl: int) -> str | None:
    """The newest job that answers the key at ``now``."""
    found = tx.value(jobs.job_by_key, False, caller=caller, idem_key=idem_key, expired=now - ttl)
    return None if found is None else str(found)


def count_live(tx: Tx, caller: str | None) -> int:
    """Live jobs of one caller, or of all."""
    if caller is None:
        return int(tx.value(jobs.count_live, False, False))
    return int(tx.value(jobs.count_live, True, False, caller=caller))


def touch_job(tx: Tx, job_id: str, lease: int) -> None:
    """Set the lease."""
    if tx.run(jobs.touch_job, job_id=job_id, lease=lease) == 0:
        raise not_found()


def set_status(tx: Tx, job_id: str, status: JobStatus, error: str, lease: int) -> None:
    """Set status and error; a terminal status also takes the job out of the rotation."""
    turn = tx.row(turns.lock_turn, job_id=job_id)
    row = tx.row(jobs.lock_job, job_id=job_id)
    if row is None:
        raise not_found()
    current = JobStatus(row[0])
    if current.terminal and status != current:
        raise InvalidTransition(
            f"status: the job is {current.value}, which is final; it can't become {status.value}"
        )
    tx.run(jobs.set_status, job_id=job_id, status=status.value, error=error, lease=lease)
    if status.terminal:
        _retire(tx, job_id, turn)


def cancel_job(tx: Tx, job_id: str, lease: int) -> Settled | None:
    """End a live job as cancelled; what is in flight stays held until it comes back."""
    turn = tx.row(turns.lock_turn, job_id=job_id)
    row = tx.row(jobs.lock_job, job_id=job_id)
    if row is None or JobStatus(row[0]).terminal:
        return None
    status = JobStatus.CANCELLED
    tx.run(jobs.set_status, job_id=job_id, status=status.value, error="", lease=lease)
    _retire(tx, job_id, turn)
    return Settled(job_id, status, row[1])


def _retire(tx: Tx, job_id: str, turn: Row | None) -> None:
    """Delete the turn of a job that has ended, unless a target of it is still in flight."""
    if turn is not None and turn[2] is None:
        tx.run(turns.delete_turns, job_ids=tx.listed([job_id]))


def fail_live_jobs(tx: Tx, reason: str, lease: int) -> int:
    """Fail every live job and empty the rotation."""
    tx.rows(turns.lock_all_turns)
    unfinished = tx.rows(jobs.unfinished_jobs)
    tx.run(targets.put_back_running, job_ids=tx.listed({job_id for (job_id,) in unfinished}))
    failed = tx.run(jobs.end_live_jobs, error=reason, lease=lease)
    tx.run(turns.delete_all_turns)
    return failed


def list_jobs(
    tx: Tx, caller: str | None, status: JobStatus | None, after: str | None, limit: int | None
) -> list[BatchJob]:
    """A page of jobs, newest first, beginning behind the job ``after``."""
    params: dict[str, object] = {"limit": MAX_COUNT if limit is None else limit}
    if caller is not None:
        params["caller"] = caller
    if status is not None:
        params["status"] = status.value
    if after is not None:
        row = tx.row(jobs.job_state, job_id=after)
        if row is None:
            raise JobNotFound("after: no such job, or it is gone by now; begin again without it")
        params |= {"after_created": row[1], "after_id": after}
    is_live = status is not None and status.live
    variant = (caller is not None, status is not None, is_live, after is not None)
    return [to_job(row) for row in tx.rows(jobs.list_jobs, *variant, **params)]


def not_found() -> JobNotFound:
    """The error for an id that no job has."""
    return JobNotFound("job_id: no such job; it never was, or was swept, evicted or deleted")
