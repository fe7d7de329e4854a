"""Faults of the SQL store: one of its statements or operations is changed for the worse.

What is there is changed, never written anew, so that a statement may take another form without
these having to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import false, null, true
from sqlalchemy.sql.visitors import replacement_traverse

from batchmill.store import BatchRepository
from batchmill.store.operations import exchange_plan, exchanging, removing, submitting
from batchmill.store.operations import jobs as job_operations
from batchmill.store.operations import targets as target_operations
from batchmill.store.statements import jobs, targets, turns
from batchmill.store.statements.common import JOB, TARGET, TURN
from tests.broken.registry import Broken
from tests.support import sqlite

Change = Callable[[Any], Any]
"""From what a module has under a name to what it has while the store is broken."""


def in_sql(fault: str, part: str, *changed: tuple[Any, str, Change]) -> Broken:
    """A store on a new file, with these changed for as long as it is used."""

    @contextmanager
    def make(folder: Path) -> Iterator[BatchRepository]:
        template = folder / "empty.db"
        if not template.exists():
            sqlite.migrated_file(template)
        count = len(list(folder.iterdir()))
        database = sqlite.copy_of(template, folder / f"{count}.db")
        patches = [
            patch.object(module, name, change(getattr(module, name)))
            for module, name, change in changed
        ]
        for each in patches:
            each.start()
        try:
            yield database.store()
        finally:
            for each in patches:
                each.stop()
            database.close()

    return Broken(fault, make, (part,))


def into(value: Any) -> Change:
    """Another thing in its place."""
    return lambda _: value


def statement(change: Callable[[Any], Any]) -> Change:
    """The statement that a function builds, changed."""
    return lambda build: lambda *variant: change(build(*variant))


def without(text: str) -> Change:
    """A statement that lacks the conditions with this text.

    Where it has none the store isn't broken, and survives.
    """

    def drop(built: Any) -> Any:
        kept = [each for each in built._where_criteria if text not in str(each)]
        changed = built._generate()
        changed._where_criteria = tuple(kept)
        return changed

    return statement(drop)


def by_age(built: Any) -> Any:
    """When a job was made, wherever it said when it was last used."""
    return replacement_traverse(
        built, {}, lambda part, **_: JOB.c.created_at if part is JOB.c.lease else None
    )


def characters(result: str | None) -> int:
    return len(result or "")


def spare_none(step: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tx, max_bytes, _, *rest, **given: step(tx, max_bytes, (), *rest, **given)


def one_step(step: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: step(*args)._replace(more=False)


def drop_the_turn(cancel: Callable[..., Any]) -> Callable[..., Any]:
    def cancel_and_drop(tx: Any, job_id: str, *rest: Any) -> Any:
        settled = cancel(tx, job_id, *rest)
        tx.run(turns.delete_turns, job_ids=tx.listed([job_id]))
        return settled

    return cancel_and_drop


STORES = [
    in_sql(
        "SQL: characters for bytes",
        "Counters",
        (target_operations, "stored_bytes", into(characters)),
        (exchange_plan, "stored_bytes", into(characters)),
    ),
    in_sql(
        "SQL: the kept total outlives a sweep",
        "Sweeping",
        (removing, "add_bytes", into(lambda *_, **__: None)),
    ),
    in_sql("SQL: sweeps by creation time", "Sweeping", (jobs, "expired_jobs", statement(by_age))),
    in_sql(
        "SQL: sweeps what is held",
        "SweepingSubmitted",
        (jobs, "expired_jobs", without("held_until")),
    ),
    in_sql("SQL: a sweep takes one step only", "Sweeping", (removing, "sweep_step", one_step)),
    in_sql("SQL: evicts live jobs", "Eviction", (jobs, "ended", into(true))),
    in_sql("SQL: evicts by creation time", "Eviction", (jobs, "evictable_jobs", statement(by_age))),
    in_sql(
        "SQL: evicts what ended in the exchange",
        "BudgetInExchange",
        (exchanging, "evict_step", spare_none),
        (removing, "evict_step", spare_none),
    ),
    in_sql(
        "SQL: a key is shared across callers", "Lookups", (jobs, "job_by_key", without("caller"))
    ),
    in_sql("SQL: a key never ends", "Lookups", (jobs, "job_by_key", without("lease"))),
    in_sql("SQL: ended jobs answer a key", "Lookups", (jobs, "answers_key", into(true))),
    in_sql("SQL: a caller's cap counts all", "Caps", (jobs, "count_live", without("caller"))),
    in_sql(
        "SQL: turns go by id",
        "Rotation",
        (
            turns,
            "claimable_turns",
            statement(lambda built: built.order_by(None).order_by(TURN.c.job_id)),
        ),
    ),
    in_sql("SQL: queues are ignored", "Queues", (turns, "claimable_turns", without("queue"))),
    in_sql(
        "SQL: retry-later doesn't wait", "Waiting", (turns, "claimable_turns", without("ready_at"))
    ),
    in_sql("SQL: anybody renews a hold", "Fences", (turns, "current_holds", without("holder"))),
    in_sql(
        "SQL: a lost hold loses busy_since",
        "BusySince",
        (turns, "release_turn", statement(lambda built: built.values(busy_since=null()))),
    ),
    in_sql(
        "SQL: losses are not counted",
        "Losing",
        (targets, "write_target", statement(lambda built: built.values(lost=TARGET.c.lost))),
    ),
    in_sql(
        "SQL: attempts are not counted",
        "Claims",
        (targets, "write_target", statement(lambda built: built.values(attempt=0))),
    ),
    in_sql(
        "SQL: a cancel drops the turn in flight",
        "Cancelling",
        (job_operations, "cancel_job", drop_the_turn),
    ),
    in_sql(
        "SQL: marking forgets what is in flight",
        "Marking",
        (targets, "put_back_running", statement(lambda built: built.where(false()))),
    ),
    in_sql(
        "SQL: a submit doesn't see its home",
        "Homes",
        (submitting, "see_runner", into(lambda *_, **__: None)),
    ),
]
