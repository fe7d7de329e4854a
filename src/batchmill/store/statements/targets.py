"""Statements on ``batch_target``."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Executable,
    Text,
    bindparam,
    delete,
    func,
    insert,
    null,
    select,
    update,
)
from sqlalchemy import cast as sql_cast

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import TARGET, among, given, number, word


def insert_target(can: Capabilities, many: bool) -> Executable:
    """Store targets as given."""
    texts = ("job_id", "url", "options", "status", "error", "hint", "result")
    types = dict.fromkeys(texts, Text) | dict.fromkeys(("idx", "nbytes"), BigInteger)
    new = given(can, many, **types)
    if many:
        return insert(TARGET).from_select(list(types), select(*new.values()))
    return insert(TARGET).values(new)


def target_page(_: Capabilities, with_results: bool) -> Executable:
    """The targets of a job from index ``start`` up to ``stop``, at most ``limit``, in order."""
    result = TARGET.c.result if with_results else sql_cast(null(), Text)
    columns = ("job_id", "idx", "url", "options", "status")
    return (
        select(*(TARGET.c[name] for name in columns), result, TARGET.c.error, TARGET.c.hint)
        .where(
            TARGET.c.job_id == bindparam("job_id"),
            TARGET.c.idx >= number("start"),
            TARGET.c.idx < number("stop"),
        )
        .order_by(TARGET.c.idx)
        .limit(number("limit"))
    )


def target_sizes(_: Capabilities) -> Executable:
    """Index and result bytes of a page of targets, without reading a result."""
    return (
        select(TARGET.c.idx, TARGET.c.nbytes)
        .where(TARGET.c.job_id == bindparam("job_id"), TARGET.c.idx >= number("start"))
        .order_by(TARGET.c.idx)
        .limit(number("limit"))
    )


def target_state(_: Capabilities) -> Executable:
    """Status and result bytes of one target."""
    return select(TARGET.c.status, TARGET.c.nbytes).where(
        TARGET.c.job_id == bindparam("job_id"), TARGET.c.idx == number("idx")
    )


def known_indexes(can: Capabilities) -> Executable:
    """Which of a list of indexes a job already has."""
    return select(TARGET.c.idx).where(
        TARGET.c.job_id == bindparam("job_id"), among(can, TARGET.c.idx, "idxs")
    )


def write_target(can: Capabilities, many: bool) -> Executable:
    """Write targets' outcomes; ``started`` and ``losses`` are added to their counts."""
    new = given(
        can,
        many,
        of_job=Text,
        at_idx=BigInteger,
        status=Text,
        error=Text,
        hint=Text,
        started=BigInteger,
        losses=BigInteger,
        nbytes=BigInteger,
        result=Text,
    )
    return (
        update(TARGET)
        .where(TARGET.c.job_id == new["of_job"], TARGET.c.idx == new["at_idx"])
        .values(
            {name: new[name] for name in ("status", "error", "hint", "nbytes", "result")}
            | {"attempt": TARGET.c.attempt + new["started"], "lost": TARGET.c.lost + new["losses"]}
        )
    )


def lowest_pending(_: Capabilities) -> Executable:
    """The index of a job's next target from ``start`` on, NULL when none is pending."""
    return select(func.min(TARGET.c.idx)).where(
        TARGET.c.job_id == bindparam("job_id"),
        TARGET.c.idx >= number("start"),
        TARGET.c.status == word("pending"),
    )


def put_back_running(can: Capabilities) -> Executable:
    """Make what is in flight pending again, in a list of jobs."""
    return (
        update(TARGET)
        .where(among(can, TARGET.c.job_id, "job_ids"), TARGET.c.status == word("running"))
        .values(status=word("pending"))
    )


def count_targets_by_status(_: Capabilities) -> Executable:
    """How many targets of each status there are; a scan."""
    return select(TARGET.c.status, func.count()).group_by(TARGET.c.status)


def delete_targets(can: Capabilities) -> Executable:
    """Delete the targets of a list of jobs."""
    return delete(TARGET).where(among(can, TARGET.c.job_id, "job_ids"))
