"""Statements on ``batch_job``."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Executable,
    Text,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import (
    JOB,
    TURN,
    among,
    answers_key,
    ended,
    given,
    live,
    locked,
    named_by,
    number,
    word,
)

_COLUMNS = tuple(JOB.c)


def insert_job(_: Capabilities) -> Executable:
    """Store a job as given: a parameter for each of its columns."""
    return insert(JOB)


def job_by_id(_: Capabilities) -> Executable:
    """The eleven columns of one job."""
    return select(*_COLUMNS).where(JOB.c.id == bindparam("job_id"))


def job_state(_: Capabilities) -> Executable:
    """Status and creation time of one job."""
    return select(JOB.c.status, JOB.c.created_at).where(JOB.c.id == bindparam("job_id"))


def lock_job(can: Capabilities) -> Executable:
    """Status and creation time of one job, which nobody else may change from here on."""
    query = select(JOB.c.status, JOB.c.created_at).where(JOB.c.id == bindparam("job_id"))
    return locked(can, query, JOB)


def targets_total(_: Capabilities) -> Executable:
    """How many targets one job has."""
    return select(JOB.c.targets_total).where(JOB.c.id == bindparam("job_id"))


def job_by_key(can: Capabilities, current: bool) -> Executable:
    """The newest job that answers a caller's key and whose lease ends after ``expired``.

    ``current``: as it is now, not as it was when the transaction began.
    """
    found = (
        select(JOB.c.id)
        .where(
            JOB.c.caller == bindparam("caller"),
            JOB.c.idem_key == bindparam("idem_key"),
            answers_key(),
            JOB.c.lease > number("expired"),
        )
        .order_by(JOB.c.created_at.desc(), JOB.c.id.desc())
        .limit(1)
    )
    return found.with_for_update(read=True) if current and can.stale_reads else found


def count_live(can: Capabilities, by_caller: bool, current: bool) -> Executable:
    """How many jobs are live, of one caller or of all; ``current`` as in :func:`job_by_key`."""
    counted = select(func.count()).select_from(JOB).where(live())
    if by_caller:
        counted = counted.where(JOB.c.caller == bindparam("caller"))
    return counted.with_for_update(read=True) if current and can.stale_reads else counted


def touch_job(_: Capabilities) -> Executable:
    """Set one job's lease."""
    return update(JOB).where(JOB.c.id == bindparam("job_id")).values(lease=number("lease"))


def touch_and_read_job(_: Capabilities) -> Executable:
    """Set one job's lease and hand out its columns."""
    touched = update(JOB).where(JOB.c.id == bindparam("job_id")).values(lease=number("lease"))
    return touched.returning(*_COLUMNS)


def touch_jobs(can: Capabilities) -> Executable:
    """Set the lease of a list of jobs."""
    return update(JOB).where(among(can, JOB.c.id, "job_ids")).values(lease=number("lease"))


def set_status(_: Capabilities) -> Executable:
    """Set one job's status, error and lease."""
    return (
        update(JOB)
        .where(JOB.c.id == bindparam("job_id"))
        .values(status=bindparam("status"), error=bindparam("error"), lease=number("lease"))
    )


def unfinished_jobs(_: Capabilities) -> Executable:
    """Every job that is live, or has ended with a target still in flight; some are twice in it.

    To leave out the doubles, SQLite would walk the whole table in the order of ids.
    """
    return select(JOB.c.id).where(live()).union_all(select(TURN.c.job_id))


def end_live_jobs(_: Capabilities) -> Executable:
    """Fail every live job."""
    failed = update(JOB).where(live())
    return failed.values(status=word("failed"), error=bindparam("error"), lease=number("lease"))


def add_to_counters(_: Capabilities) -> Executable:
    """Add to a job's counters."""
    return (
        update(JOB)
        .where(JOB.c.id == bindparam("job_id"))
        .values(
            targets_done=JOB.c.targets_done + number("done"),
            nbytes=JOB.c.nbytes + number("bytes"),
        )
    )


def add_to_job(can: Capabilities, many: bool) -> Executable:
    """Add to jobs' counters, set their status and lease, and their error unless NULL is given."""
    new = given(
        can,
        many,
        of_job=Text,
        status=Text,
        error=Text,
        done=BigInteger,
        bytes=BigInteger,
        lease=BigInteger,
    )
    return (
        update(JOB)
        .where(named_by(can, many, JOB.c.id, new["of_job"]))
        .values(
            status=new["status"],
            error=func.coalesce(new["error"], JOB.c.error),
            targets_done=JOB.c.targets_done + new["done"],
            nbytes=JOB.c.nbytes + new["bytes"],
            lease=new["lease"],
        )
    )


def count_by_status(_: Capabilities) -> Executable:
    """How many jobs of each status there are; a scan."""
    return select(JOB.c.status, func.count()).group_by(JOB.c.status)


def oldest_lease(_: Capabilities) -> Executable:
    """The lowest lease, NULL when there is no job."""
    return select(func.min(JOB.c.lease))


def list_jobs(
    _: Capabilities, by_caller: bool, by_status: bool, is_live: bool, after: bool
) -> Executable:
    """A page of jobs, newest first; ``is_live`` says that the status asked for is a live one.

    It is what the planner has to see to take the index that holds live jobs only.
    """
    page = select(*_COLUMNS)
    if by_caller:
        page = page.where(JOB.c.caller == bindparam("caller"))
    if by_status:
        page = page.where(JOB.c.status == bindparam("status"))
    if is_live:
        page = page.where(live())
    if after:
        page = page.where(
            JOB.c.created_at <= number("after_created"),
            or_(
                JOB.c.created_at < number("after_created"),
                JOB.c.id < bindparam("after_id"),
            ),
        )
    return page.order_by(JOB.c.created_at.desc(), JOB.c.id.desc()).limit(number("limit"))


def expired_jobs(_: Capabilities) -> Executable:
    """The next jobs to sweep, with what they take; never one on which a hold still stands.

    Its turn is looked up for each, not joined to: of a join a planner may make a walk of all turns.
    """
    until = select(TURN.c.held_until).where(TURN.c.job_id == JOB.c.id).scalar_subquery()
    free = func.coalesce(until, number("now_ms")) <= number("now_ms")
    return (
        select(JOB.c.id, JOB.c.targets_total, JOB.c.nbytes)
        .where(JOB.c.lease <= number("expired"), free)
        .order_by(JOB.c.lease, JOB.c.id)
        .limit(number("limit"))
    )


def evictable_jobs(can: Capabilities) -> Executable:
    """The next finished jobs to evict, oldest lease first, apart from a list that is spared."""
    return (
        select(JOB.c.id, JOB.c.targets_total, JOB.c.nbytes)
        .where(ended(), ~among(can, JOB.c.id, "spared"))
        .order_by(JOB.c.lease, JOB.c.id)
        .limit(number("limit"))
    )


def bytes_of_job(can: Capabilities) -> Executable:
    """What one job counts for in the byte total, which nobody may change from here on."""
    return locked(can, select(JOB.c.nbytes).where(JOB.c.id == bindparam("job_id")), JOB)


def _lock_doomed(can: Capabilities, still: ColumnElement[bool]) -> Executable:
    query = (
        select(JOB.c.id, JOB.c.targets_total, JOB.c.nbytes)
        .where(among(can, JOB.c.id, "job_ids"), still)
        .order_by(JOB.c.lease, JOB.c.id)
    )
    return locked(can, query, JOB, skip=True)


def lock_expired(can: Capabilities) -> Executable:
    """Those of a list of jobs that are free and still expired, with what they take."""
    return _lock_doomed(can, JOB.c.lease <= number("expired"))


def lock_ended(can: Capabilities) -> Executable:
    """Those of a list of jobs that are free and have ended, with what they take."""
    return _lock_doomed(can, ended())


def delete_jobs(can: Capabilities) -> Executable:
    """Delete a list of jobs; their targets and turns go first, by statements of their own."""
    return delete(JOB).where(among(can, JOB.c.id, "job_ids"))
