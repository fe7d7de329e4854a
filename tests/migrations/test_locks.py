"""The lock that keeps two upgrades of the same tables apart, and what ends an upgrade half-way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, event

from batchmill.errors import StoreBusy, StoreUnavailable
from batchmill.store import migrate
from batchmill.store.boundaries import alone
from batchmill.store.capabilities import capabilities_of
from tests.migrations import support
from tests.migrations.places import SERVERS, MakePlace, Place

on_servers = pytest.mark.parametrize("place", SERVERS, indirect=True)
STATEMENTS = 25
"""More than an upgrade of MariaDB runs that change something."""


@on_servers
def test_a_lock_that_another_holds(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another upgrade goes on ours waits so long and no longer, and does nothing."""
    monkeypatch.setattr(migrate, "PATIENCE", 0.2)
    with migrate.locked(place.plain_engine(), place.schema):
        for call in (migrate.upgrade, migrate.stamp):
            with pytest.raises(StoreBusy, match="another upgrade"):
                call(place.engine(), schema=place.schema)
        with place.engine().connect() as connection:
            with pytest.raises(StoreBusy, match="another upgrade"):
                migrate.upgrade(connection, schema=place.schema)
            connection.exec_driver_sql("SELECT 1")  # the application's transaction goes on
    assert place.dump() == "\n"
    migrate.upgrade(place.engine(), schema=place.schema)
    place.assert_migrated()


@on_servers
def test_a_lock_that_is_given_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade that waits for another goes on as soon as that one has ended."""
    waited = threading.Event()
    monkeypatch.setattr("batchmill.store.boundaries.time.sleep", lambda _seconds: waited.set())
    thread = threading.Thread(
        target=migrate.upgrade, args=(place.engine(),), kwargs={"schema": place.schema}
    )
    with migrate.locked(place.plain_engine(), place.schema):
        thread.start()
        assert waited.wait(30)
    thread.join()
    place.assert_migrated()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_each_database_has_a_lock_of_its_own(kind: str, make_place: MakePlace) -> None:
    """An upgrade of one database of a server doesn't wait for that of another."""
    first, second = make_place(kind), make_place(kind)
    with migrate.locked(first.engine()):
        migrate.upgrade(second.engine())
    second.assert_migrated()


def test_each_schema_has_a_lock_of_its_own(make_place: MakePlace) -> None:
    """An upgrade of one schema doesn't wait for that of another, nor of the default one."""
    place = make_place("schema")
    with migrate.locked(place.engine(), place.schema):
        migrate.upgrade(place.engine())
    migrate.downgrade(place.engine(), "base")
    with migrate.locked(place.engine()):
        migrate.upgrade(place.engine(), schema=place.schema)
    place.assert_migrated()


def test_one_schema_has_one_lock(make_place: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema named and the same one found by the search path share their lock."""
    monkeypatch.setattr(migrate, "PATIENCE", 0.0)
    place = make_place("postgresql")
    with migrate.locked(place.engine(), "public"), pytest.raises(StoreBusy):
        migrate.upgrade(place.engine())


@pytest.mark.parametrize("answer", [0, "NULL"])
def test_a_lock_that_the_database_refuses(answer: Any, make_place: MakePlace) -> None:
    """GET_LOCK's 0 (somebody has it) and NULL (an error) are errors, never taken for a lock."""
    place = make_place("mariadb")
    with place.engine().connect() as connection:
        can = replace(capabilities_of(connection.dialect), named_lock=f"SELECT {answer}")
        error = StoreBusy if answer == 0 else StoreUnavailable
        with pytest.raises(error), alone(connection, can, 0.0):
            pytest.fail("went on without the lock")


@on_servers
def test_a_table_in_use(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """DDL that would wait for a reader gives up within seconds, so that others don't wait too.

    Tried again until our patience is over, it is StoreBusy; the reader gone, it succeeds.
    """
    monkeypatch.setattr(migrate, "PATIENCE", 0.2)
    migrate.upgrade(place.engine(), schema=place.schema)
    engine = place.engine()
    impatient = (
        "SET LOCAL lock_timeout = 50",
        ("SET @batchmill_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 0"),
    )

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def sooner(_c: Any, _cu: Any, statement: str, parameters: Any, *_rest: Any) -> Any:
        if "lock_timeout" in statement or "@@lock_wait_timeout" in statement:
            statement = impatient[place.kind == "mariadb"]
        return statement, parameters

    with place.inside() as reader:
        reader.exec_driver_sql("SELECT * FROM batch_total").all()
        with pytest.raises(StoreBusy):
            migrate.downgrade(engine, "base", schema=place.schema)
    migrate.downgrade(place.engine(), "base", schema=place.schema)
    assert migrate.current(place.engine(), schema=place.schema) is None


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_waits_of_the_pool_are_as_before(kind: str, make_place: MakePlace) -> None:
    """The connection goes back to the application's pool with its own time to wait for a lock."""
    engine = make_place(kind).plain_engine(pool_size=1, max_overflow=0)
    setting = "@@lock_wait_timeout" if kind == "mariadb" else "current_setting('lock_timeout')"

    def seen() -> Any:
        with engine.connect() as connection:
            return connection.exec_driver_sql(f"SELECT {setting}").scalar()

    before = seen()
    migrate.upgrade(engine)
    assert seen() == before


@contextmanager
def after_statement(engine: Engine, number: int, what: Callable[[Any], None]) -> Iterator[None]:
    """Do something right after the so-many-th statement that changes something."""
    left = [number]

    def count(_c: Any, cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().startswith(("CREATE", "INSERT", "UPDATE", "DROP", "DELETE")):
            left[0] -= 1
            if left[0] == 0:
                what(cursor)

    event.listen(engine, "after_cursor_execute", count)
    yield
    event.remove(engine, "after_cursor_execute", count)


def cut(cursor: Any) -> None:
    """Lose the connection, as when the process is killed: what isn't committed is gone."""
    cursor.connection._force_close()


def cut_and_finish(place: Place, number: int) -> bool:
    """Cut an upgrade off, then upgrade again; False when it had ended before."""
    engine = place.engine()
    cut_off = True
    with after_statement(engine, number, cut):
        try:
            migrate.upgrade(engine)
            cut_off = False
        except StoreUnavailable:
            pass
    migrate.upgrade(place.engine())
    place.assert_migrated()
    return cut_off


@pytest.mark.parametrize("number", [1, 3, 9, 20])
def test_cut_off_on_mariadb(number: int, make_place: MakePlace) -> None:
    """Where DDL isn't undone, an upgrade that was cut off is finished by the next one."""
    assert cut_and_finish(make_place("mariadb"), number)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_cut_off_on_mariadb_anywhere(make_place: MakePlace) -> None:
    """The same after each single statement of an upgrade."""
    cut_off = [cut_and_finish(make_place("mariadb"), n) for n in range(1, STATEMENTS)]
    assert cut_off == sorted(cut_off, reverse=True)  # each, up to the last statement
    assert not cut_off[-1]


def test_a_downgrade_cut_off_on_mariadb(make_place: MakePlace) -> None:
    """A downgrade that was cut off is finished by the next one."""
    place = make_place("mariadb")
    migrate.upgrade(place.engine())
    for number in (1, 3, 4):
        engine = place.engine()
        with after_statement(engine, number, cut), pytest.raises(StoreUnavailable):
            migrate.downgrade(engine, "base")
    migrate.downgrade(place.engine(), "base")
    assert migrate.current(place.engine()) is None
    migrate.upgrade(place.engine())
    place.assert_migrated()


CHILD = """
import sys
from sqlalchemy import event
from batchmill.store import create_store_engine, migrate
from tests.migrations.test_locks import after_statement, tell_and_wait

engine = create_store_engine(sys.argv[1])
with after_statement(engine, 9, tell_and_wait):
    migrate.upgrade(engine)
"""


def tell_and_wait(_cursor: Any) -> None:
    """Say that the moment has come, and never go on."""
    print("now", flush=True)
    time.sleep(600)


def test_killed_on_mariadb(make_place: MakePlace) -> None:
    """Killed with -9 between two revisions, its lock is free and the next upgrade finishes."""
    place = make_place("mariadb")
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, place.url],
        cwd=support.TOP,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "now\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert "batch_turn_number" not in place.dump()
    migrate.upgrade(place.engine())
    place.assert_migrated()
