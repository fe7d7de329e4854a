"""Values that the database or its driver doesn't take: that one target fails, its set is stored."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import event

from batchmill.errors import StoreError
from tests.store.support import done, exchange, submit
from tests.support.fixtures import on_sqlite
from tests.support.invariants import broken

pytestmark = on_sqlite

LARGE = '"' + "x" * 5000 + '"'


@pytest.fixture
def claims(store):
    """Three targets in flight, of three jobs."""
    for name in ("a", "b", "c"):
        submit(store, name)
    return exchange(store, want=3).claims


def hand_in(store, claims):
    """Two small results, and between them a large one."""
    results = ["1", LARGE, "3"]
    outcomes = [done(claim, result) for claim, result in zip(claims, results, strict=True)]
    return exchange(store, outcomes, want=0)


@pytest.mark.parametrize("error", [OverflowError, sqlite3.DataError, sqlite3.InterfaceError])
def test_a_value_that_the_driver_refuses_fails_its_target_only(database, store, claims, error):
    """Whatever class the driver raises for it: failed with a clear text, the others are done."""

    def refuse(cursor, statement, parameters, context) -> None:
        if LARGE in str(parameters):
            raise error("not for anybody's eyes")

    event.listen(store.engine, "do_execute", refuse)
    event.listen(store.engine, "do_executemany", refuse)
    answer = hand_in(store, claims)
    assert sorted(answer.stored) == sorted(claim.token for claim in claims)
    assert list(answer.unstorable) == [claims[1].token]
    assert [settled.status for settled in answer.settled] == ["done", "failed", "done"]
    (target,) = store.get_targets("b")
    assert target.error == "the outcome can't be stored: the database refused it; make it smaller"
    assert broken(database) == []


def test_a_text_beyond_the_limit_of_the_database(database, store, claims):
    """SQLite's own limit on the length of a text, here lowered, does the same."""

    @event.listens_for(store.engine, "checkout")
    def _limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, len(LARGE) - 100)

    answer = hand_in(store, claims)
    assert list(answer.unstorable) == [claims[1].token]
    with pytest.raises(StoreError, match="larger than the database takes"):
        submit(store, "d", idem_key="k", caller="c" * 10)
        store.set_job_status("d", "failed", now=100, error=LARGE)
    assert broken(database) == []
