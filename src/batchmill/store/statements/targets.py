"""Statements on ``batch_target``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Executable,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    null,
    select,
    update,
)
from sqlalchemy import cast as sql_cast

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import (
    JOB,
    TARGET,
    among,
    given,
    named_by,
    next_pending,
    number,
    word,
)
from batchmill.validation import MAX_COUNT


def insert_target(can: Capabilities, many: bool) -> Executable:
    """Store targets as given."""
    texts = ("job_id", "url", "options", "status", "error", "hint", "result")
    types = dict.fromkeys(texts, Text) | dict.fromkeys(("idx", "nbytes"), BigInteger)
    new = given(can, many, **types)
    if many:
        return insert(TARGET).from_select(list(types), select(*new.values()))
    return insert(TARGET).values(new)


def insert_pending(can: Capabilities, many: bool) -> Executable:
    """Store targets of a new job: nothing started, nothing stored."""
    new = given(can, many, job_id=Text, idx=BigInteger, url=Text, options=Text)
    values = {**new, "status": word("pending")}
    if many:
        return insert(TARGET).from_select(list(values), select(*values.values()))
    return insert(TARGET).values(values)


def target_page(_: Capabilities, with_results: bool, by_bytes: bool) -> Executable:
    """The targets of a job from index ``start`` on, at most ``limit``, in order.

    ``by_bytes``: only as many as have results of ``max_bytes`` together, one at the least.
    """
    result = TARGET.c.result if with_results else sql_cast(null(), Text)
    columns = ("idx", "url", "options", "status")
    page = select(*(TARGET.c[name] for name in columns), result, TARGET.c.error, TARGET.c.hint)
    page = page.where(TARGET.c.job_id == bindparam("job_id"), TARGET.c.idx >= number("start"))
    if by_bytes:
        large = select(JOB.c.nbytes).where(JOB.c.id == bindparam("job_id")).scalar_subquery()
        cut = case((large > number("max_bytes"), _first_too_many()))
        page = page.where(TARGET.c.idx < func.coalesce(cut, MAX_COUNT + 1))
    return page.order_by(TARGET.c.idx).limit(number("limit"))


def _first_too_many() -> Any:
    """The index of the first target whose result is too much for a page; reads no result.

    Nor is it looked for in a job whose results fit together.
    """
    upto = func.sum(TARGET.c.nbytes).over(order_by=TARGET.c.idx, rows=(None, 0))
    place = func.row_number().over(order_by=TARGET.c.idx)
    sizes = (
        select(TARGET.c.idx, upto.label("upto"), place.label("place"))
        .where(TARGET.c.job_id == bindparam("job_id"), TARGET.c.idx >= number("start"))
        .order_by(TARGET.c.idx)
        .limit(number("limit"))
        .subquery("sizes")
    )
    over = select(func.min(sizes.c.idx)).where(
        sizes.c.upto > number("max_bytes"), sizes.c.place > 1
    )
    return over.scalar_subquery()


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
        .where(named_by(can, many, TARGET.c.job_id, new["of_job"]), TARGET.c.idx == new["at_idx"])
        .values(
            {name: new[name] for name in ("status", "error", "hint", "nbytes", "result")}
            | {"attempt": TARGET.c.attempt + new["started"], "lost": TARGET.c.lost + new["losses"]}
        )
    )


def lowest_pending(_: Capabilities) -> Executable:
    """The index of a job's next target from ``start`` on; no row when none is pending."""
    return next_pending(TARGET, bindparam("job_id"), TARGET.c.idx >= number("start"))


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
