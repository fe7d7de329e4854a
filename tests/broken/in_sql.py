"""Faults of the SQL store: one of its statements or operations is replaced by a worse one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import Executable, bindparam, null, or_, select, true, update

from batchmill.store import BatchRepository
from batchmill.store.operations import common, exchange_plan, exchanging, holding, removing
from batchmill.store.operations import jobs as job_operations
from batchmill.store.operations import targets as target_operations
from batchmill.store.statements import jobs, targets, turns
from batchmill.store.statements.common import JOB, TARGET, TURN, among, answers_key, live, number
from tests.broken.registry import Broken, Make
from tests.support import sqlite

Replace = tuple[Any, str, Any]


def with_replaced(*replaced: Replace) -> Make:
    """A store on a new file, of which these parts are replaced for as long as it is used."""

    @contextmanager
    def make(folder: Path) -> Iterator[BatchRepository]:
        template = folder / "empty.db"
        if not template.exists():
            sqlite.migrated_file(template)
        count = len(list(folder.iterdir()))
        database = sqlite.copy_of(template, folder / f"{count}.db")
        patches = [patch.object(*each) for each in replaced]
        for each in patches:
            each.start()
        try:
            yield database.store()
        finally:
            for each in patches:
                each.stop()
            database.close()

    return make


def in_sql(fault: str, *parts: str, replaced: list[Replace]) -> Broken:
    return Broken(fault, with_replaced(*replaced), parts)


def characters(result: str | None) -> int:
    return len(result or "")


def no_total(_: Any, *, nbytes: int = 0, turns: int = 0) -> common.Total:
    return common.Total(0, 0)


def expired_by_age(_: Any) -> Executable:
    return (
        select(JOB.c.id, JOB.c.targets_total, JOB.c.nbytes)
        .where(JOB.c.created_at <= number("expired"), number("now_ms").is_not(None))
        .order_by(JOB.c.lease, JOB.c.id)
        .limit(number("limit"))
    )


def expired_and_held(_: Any) -> Executable:
    return (
        select(JOB.c.id, JOB.c.targets_total, JOB.c.nbytes)
        .where(JOB.c.lease <= number("expired"), number("now_ms").is_not(None))
        .order_by(JOB.c.lease, JOB.c.id)
        .limit(number("limit"))
    )


def key_of_anybody(_: Any) -> Executable:
    return (
        select(JOB.c.id)
        .where(
            or_(JOB.c.caller == bindparam("caller"), JOB.c.caller.is_not(None)),
            JOB.c.idem_key == bindparam("idem_key"),
            answers_key(),
            JOB.c.lease > number("expired"),
        )
        .order_by(JOB.c.created_at.desc(), JOB.c.id.desc())
        .limit(1)
    )


def claimable_by_id(can: Any, shared: bool) -> Executable:
    found: Any = CLAIMABLE(can, shared)
    return found.order_by(None).order_by(TURN.c.job_id)  # type: ignore[no-any-return]


def holds_of_anybody(can: Any) -> Executable:
    return (
        select(TURN.c.token, TURN.c.job_id, JOB.c.status)
        .select_from(TURN.join(JOB, JOB.c.id == TURN.c.job_id))
        .where(
            among(can, TURN.c.token, "tokens"),
            or_(TURN.c.holder == bindparam("holder"), true()),
        )
    )


def released_and_forgotten(_: Any) -> Executable:
    return (
        update(TURN)
        .where(TURN.c.job_id == bindparam("of_job"), TURN.c.token == bindparam("old_token"))
        .values(
            turn=number("turn"),
            next_idx=number("next_idx") + 0 * number("same_target"),
            targets_failed=number("targets_failed"),
            ready_at=0,
            busy_since=null(),
            holder=null(),
            token=null(),
            held_until=null(),
        )
    )


def uncounted_losses(_: Any) -> Executable:
    return (
        update(TARGET)
        .where(TARGET.c.job_id == bindparam("of_job"), TARGET.c.idx == number("at_idx"))
        .values(
            status=bindparam("status"),
            error=bindparam("error"),
            hint=bindparam("hint"),
            attempt=TARGET.c.attempt + number("started") + 0 * number("losses"),
            nbytes=number("nbytes"),
            result=bindparam("result"),
        )
    )


def drop_turn(tx: Any, job_id: str) -> None:
    tx.run(turns.delete_turns, job_ids=common.listed([job_id]))


def one_step(step: Callable[..., removing.Step]) -> Callable[..., removing.Step]:
    return lambda *args: step(*args)._replace(more=False)


def spare_none(tx: Any, max_bytes: int, spared: Any, limit: int | None) -> removing.Step:
    return EVICT(tx, max_bytes, (), limit)


def keep_the_running(tx: Any, reason: str, lease: int) -> int:
    """Fail the live jobs and forget their targets in flight."""
    failed: int = tx.run(jobs.end_live_jobs, error=reason, lease=lease)
    tx.run(turns.delete_all_turns)
    return failed


CLAIMABLE, EVICT = turns.claimable_turns, removing.evict_step
COUNT = jobs.count_live

STORES = [
    in_sql(
        "SQL: characters for bytes",
        "Counters",
        replaced=[
            (target_operations, "stored_bytes", characters),
            (exchange_plan, "stored_bytes", characters),
        ],
    ),
    in_sql(
        "SQL: the kept total outlives a sweep",
        "Sweeping",
        replaced=[(removing, "add_to_total", no_total)],
    ),
    in_sql(
        "SQL: sweeps by creation time",
        "Sweeping",
        replaced=[(jobs, "expired_jobs", expired_by_age)],
    ),
    in_sql(
        "SQL: sweeps what is held",
        "SweepingSubmitted",
        replaced=[(jobs, "expired_jobs", expired_and_held)],
    ),
    in_sql("SQL: evicts live jobs", "Eviction", replaced=[(jobs, "ended", true)]),
    in_sql(
        "SQL: evicts what ended in the exchange",
        "BudgetInExchange",
        replaced=[(exchanging, "evict_step", spare_none), (removing, "evict_step", spare_none)],
    ),
    in_sql(
        "SQL: a sweep takes one step only",
        "Sweeping",
        replaced=[(removing, "sweep_step", one_step(removing.sweep_step))],
    ),
    in_sql(
        "SQL: a key is shared across callers",
        "Lookups",
        replaced=[(jobs, "job_by_key", key_of_anybody)],
    ),
    in_sql(
        "SQL: ended jobs answer a key",
        "Lookups",
        replaced=[(jobs, "answers_key", lambda: or_(live(), true()))],
    ),
    in_sql(
        "SQL: turns go by id", "Rotation", replaced=[(turns, "claimable_turns", claimable_by_id)]
    ),
    in_sql(
        "SQL: anybody renews a hold",
        "Fences",
        replaced=[(turns, "current_holds", holds_of_anybody)],
    ),
    in_sql(
        "SQL: a lost hold loses busy_since",
        "BusySince",
        replaced=[(turns, "release_turn", released_and_forgotten)],
    ),
    in_sql(
        "SQL: losses are not counted",
        "Losing",
        replaced=[(targets, "write_target", uncounted_losses)],
    ),
    in_sql(
        "SQL: a cancel drops the turn in flight",
        "Cancelling",
        replaced=[(job_operations, "retire_turn", drop_turn)],
    ),
    in_sql(
        "SQL: marking forgets what is in flight",
        "Marking",
        replaced=[(job_operations, "fail_live_jobs", keep_the_running)],
    ),
    in_sql(
        "SQL: a submit doesn't see its home",
        "Homes",
        replaced=[(holding, "see_runner", lambda *_, **__: None)],
    ),
]
