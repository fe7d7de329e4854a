"""What a refusal says: the same words from every store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from batchmill.errors import StoreError
from batchmill.records import BatchTarget
from batchmill.store import BatchRepository
from batchmill.testing import MemoryStore
from tests.store.support import exchange, finish, job, submit, targets
from tests.support.database import Database
from tests.support.fixtures import database, make_database, migrated_sqlite, store

__all__ = ["database", "make_database", "migrated_sqlite", "store"]

LOST_ROW = "a row of batch_total is missing; restore the rows -2 to 7, with their bytes"


def _create_twice(store: Any) -> None:
    store.create_job(job("a"))
    store.create_job(job("a"))


def _submit_a_known_id(store: Any) -> None:
    submit(store, "a")
    submit(store, "a", idem_key="another")


def _list_after_nobody(store: Any) -> None:
    store.list_jobs(after="nobody")


def _touch_nobody(store: Any) -> None:
    store.touch_job("nobody", now=100)


def _status_of_nobody(store: Any) -> None:
    store.set_job_status("nobody", "done", now=100)


def _targets_of_nobody(store: Any) -> None:
    store.put_targets("nobody", targets(1))


def _leave_a_final_status(store: Any) -> None:
    finish(store, "a")
    store.set_job_status("a", "cancelled", now=100)


def _more_targets_of_a_submitted_job(store: Any) -> None:
    submit(store, "a")
    store.put_targets("a", [BatchTarget("", 7, "u")])


def _a_known_index(store: Any) -> None:
    store.create_job(job("a"))
    store.put_targets("a", targets(2))
    store.put_targets("a", targets(1))


def _write_no_target(store: Any) -> None:
    submit(store, "a")
    store.update_target("a", 1, now=100, status="done", result="{}")


def _unfinish_a_target(store: Any) -> None:
    submit(store, "a", 2)
    store.update_target("a", 1, now=100, status="failed", error="e")
    store.update_target("a", 1, now=100, status="pending")


def _write_what_is_in_flight(store: Any) -> None:
    submit(store, "a")
    exchange(store)
    store.update_target("a", 0, now=100, status="done", result="{}")


def _start_by_hand(store: Any) -> None:
    submit(store, "a")
    store.update_target("a", 0, now=100, status="running")


REFUSALS = [
    _create_twice,
    _submit_a_known_id,
    _list_after_nobody,
    _touch_nobody,
    _status_of_nobody,
    _targets_of_nobody,
    _leave_a_final_status,
    _more_targets_of_a_submitted_job,
    _a_known_index,
    _write_no_target,
    _unfinish_a_target,
    _write_what_is_in_flight,
    _start_by_hand,
]


def _words(call: Callable[[Any], None], store: Any) -> tuple[type[StoreError], str]:
    with pytest.raises(StoreError) as refused:
        call(store)
    return refused.type, str(refused.value)


@pytest.mark.parametrize("call", REFUSALS)
def test_a_refusal_says_the_same_on_every_store(
    store: BatchRepository, call: Callable[[Any], None]
) -> None:
    """The SQL store refuses with the error and the very words of MemoryStore."""
    assert _words(call, store) == _words(call, MemoryStore())


@pytest.mark.parametrize(
    ("rows", "call"),
    [
        pytest.param("shard IN (-1, 0)", lambda store: submit(store, "b"), id="submit"),
        pytest.param("shard >= 0", lambda store: store.create_job(job("b", nbytes=1)), id="create"),
        pytest.param("shard < 0", lambda store: store.evict_oldest(max_bytes=0), id="evict"),
    ],
)
def test_a_total_without_its_rows_is_named(
    database: Database, store: BatchRepository, rows: str, call: Callable[[Any], None]
) -> None:
    """Where somebody deleted rows of the total, a write says which to restore."""
    finish(store, "a")
    database.alter(f"DELETE FROM batch_total WHERE {rows}")
    with pytest.raises(StoreError, match=f"^{LOST_ROW}$"):
        call(store)
