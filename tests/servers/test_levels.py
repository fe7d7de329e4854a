"""Isolation levels: the store's own transactions, and those of the application that it joins."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import InvalidRequestError

from batchmill.errors import Busy, CallerBusy, InvalidInput, StoreBusy
from batchmill.records import Limits
from batchmill.store import BatchRepository, create_store_engine
from batchmill.store.engine import parse_url
from tests.store.support import job, submit

LEVELS = ["REPEATABLE READ", "SERIALIZABLE"]
WAYS = ["by the application", "by us", "with options", "by us, with options"]
PATIENCE = 20.0
Raw = Callable[..., list[tuple[Any, ...]]]


def limits(of_caller: int = 100, total: int = 100) -> Limits:
    return Limits(targets_per_job=100, jobs_per_caller=of_caller, jobs_total=total)


@contextmanager
def transaction(engine: Engine, level: str) -> Iterator[Connection]:
    """A transaction of the application's at this level, which has read already."""
    connecting = engine.connect().execution_options(isolation_level=level)
    with connecting as connection, connection.begin():
        connection.execute(text("SELECT count(*) FROM batch_job")).scalar()
        yield connection


@pytest.mark.parametrize("level", LEVELS)
def test_postgresql_refuses_a_bound_submit(postgres: Engine, level: str) -> None:
    """The error names the argument, the level and what to do, and the application goes on."""
    store = BatchRepository(postgres)
    with transaction(postgres, level) as connection:
        with pytest.raises(InvalidInput, match=f"^within: its transaction is {level}, .*begin it"):
            submit(store, "a", within=connection)
        with pytest.raises(InvalidInput, match="^within: "):
            submit(store.bound_to(connection), "a")
        store.bound_to(connection).create_job(job("other"))
    assert [kept.id for kept in store.list_jobs()] == ["other"]


def test_postgresql_takes_a_bound_submit_under_read_committed(postgres: Engine) -> None:
    """What the error asks for is taken, and counts what was committed since the beginning."""
    store = BatchRepository(postgres)
    with transaction(postgres, "READ COMMITTED") as connection:
        submit(store, "a")
        assert submit(store, "b", within=connection, limits=limits(1)).rejected is CallerBusy
        assert submit(store, "c", within=connection, limits=limits(2)).job_id == "c"


@pytest.mark.mariadb
@pytest.mark.parametrize("level", ["READ COMMITTED", *LEVELS])
def test_mariadb_counts_what_an_older_snapshot_does_not_show(maria: Engine, level: str) -> None:
    """Both caps and the key are exact in a transaction that read before others committed."""
    store = BatchRepository(maria)
    with transaction(maria, level) as connection:
        if level == "SERIALIZABLE":  # there every read locks, and no other submit gets through
            assert submit(store, "a", within=connection).job_id == "a"
        else:
            submit(store, "a")
        bound = store.bound_to(connection)
        if level == "REPEATABLE READ":
            assert bound.count_live_jobs() == 0  # the transaction itself sees none
        assert submit(bound, "b", limits=limits(1)).rejected is CallerBusy
        assert submit(bound, "c", caller="other", limits=limits(5, 1)).rejected is Busy
        again = submit(bound, "d", idem_key="key-a")
        assert (again.job_id, again.reused) == ("a", True)
        assert submit(bound, "e", limits=limits(2)).job_id == "e"
    assert {kept.id for kept in store.list_jobs()} == {"a", "e"}


@pytest.mark.mariadb
@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
def test_mariadb_makes_a_submit_wait_for_a_bound_one(maria: Engine, level: str) -> None:
    """A submit that comes while the application holds the caps counts the job it commits."""
    store = BatchRepository(maria)
    answers: list[Any] = []
    other = threading.Thread(target=lambda: answers.append(submit(store, "late", limits=limits(1))))
    with transaction(maria, level) as connection:
        submit(store, "first", within=connection, limits=limits(1))
        other.start()
        other.join(0.3)
        assert other.is_alive()
    other.join(PATIENCE)
    assert answers[0].rejected is CallerBusy


def _level_of(store: BatchRepository) -> str:
    """The level of the store's own transactions, as the database says."""
    postgresql = store.engine.dialect.name == "postgresql"
    sql = "SHOW transaction_isolation" if postgresql else "SELECT @@tx_isolation"
    found = store._transactions.write(lambda tx: tx.connection.exec_driver_sql(sql).scalar())
    return str(found).upper().replace("-", " ")


def _events_level(engine: Engine, level: str) -> None:
    """The application sets its level itself on each connection."""
    postgresql = engine.dialect.name == "postgresql"
    what = "CHARACTERISTICS AS TRANSACTION" if postgresql else "TRANSACTION"

    @event.listens_for(engine, "connect", insert=True)
    def set_level(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION {what} ISOLATION LEVEL {level}")
        cursor.close()
        connection.commit()


@pytest.mark.parametrize(
    ("made", "level"),
    [
        *itertools.product(WAYS, [*LEVELS, "AUTOCOMMIT"]),
        *(("by an event", level) for level in LEVELS),
    ],
)
def test_our_own_transactions_have_their_own_level(server: Engine, made: str, level: str) -> None:
    """Whatever level an application's engine has, ours are READ COMMITTED, and its own stays."""
    url, options = parse_url(server.url), {"isolation_level": level}
    if made == "by the application":
        engine = create_engine(url, isolation_level=level)
    elif made == "by us":
        engine = create_store_engine(url, isolation_level=level)
    elif made == "with options":
        engine = create_store_engine(url).execution_options(**options)
    elif made == "by us, with options":
        engine = create_store_engine(url, execution_options=options)
    else:
        engine = create_engine(url)
        _events_level(engine, level)
    store = BatchRepository(engine)
    assert submit(store, "a").job_id == "a"
    assert _level_of(store) == "READ COMMITTED"
    if _comes_back(engine):
        with engine.connect() as connection:
            assert level in (connection.get_isolation_level(), _driver_level(connection))
    engine.dispose()


def _comes_back(engine: Engine) -> bool:
    """Whether SQLAlchemy itself gives a connection the engine's level back after another one.

    Before 2.0.20 or so it made the server's default out of AUTOCOMMIT.
    """
    fresh = create_engine(engine.url, isolation_level="AUTOCOMMIT")
    with fresh.connect().execution_options(isolation_level="READ COMMITTED"):
        pass
    with fresh.connect() as connection:
        back = _driver_level(connection) == "AUTOCOMMIT"
    fresh.dispose()
    return back


def _driver_level(connection: Connection) -> str:
    """AUTOCOMMIT, where the driver's own connection commits by itself."""
    driver: Any = connection.connection.driver_connection
    commits = driver.get_autocommit() if hasattr(driver, "get_autocommit") else driver.autocommit
    return "AUTOCOMMIT" if commits else ""


def test_a_connection_in_autocommit_is_not_joined(store: BatchRepository, raw: Raw) -> None:
    """There is no transaction to work in: a bound write says so, and nothing is half-stored."""
    connecting = store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    with connecting as connection, pytest.raises(InvalidInput, match="is in autocommit"):
        submit(store, "a", 3, within=connection)
    assert raw("SELECT count(*) FROM batch_job") == [(0,)]


@pytest.mark.mariadb
def test_a_deadlock_ends_the_applications_transaction(maria: Engine) -> None:
    """MariaDB gives up all of it: the error is StoreBusy, and nothing more can be committed in it.

    What follows would else be committed without its beginning.
    """
    store = BatchRepository(maria)
    for job_id in ("a", "b"):
        store.create_job(job(job_id))
    locked, other = threading.Barrier(2), maria.connect()

    def cross() -> None:
        with other.begin():
            for number in range(50):  # it has changed more rows, so that the other one is given up
                other.execute(text(f"INSERT INTO batch_runner VALUES ('r{number}', 1, 1)"))
            other.execute(text("UPDATE batch_job SET error = 'x' WHERE id = 'b'"))
            locked.wait(PATIENCE)
            other.execute(text("UPDATE batch_job SET error = 'x' WHERE id = 'a'"))

    crossing = threading.Thread(target=cross)
    crossing.start()
    with maria.begin() as connection:
        connection.execute(text("INSERT INTO batch_runner VALUES ('before', 1, 1)"))
        store.bound_to(connection).touch_job("a", now=5)
        locked.wait(PATIENCE)
        with pytest.raises(StoreBusy):
            store.bound_to(connection).touch_job("b", now=5)
        with pytest.raises(InvalidRequestError):
            connection.execute(text("INSERT INTO batch_runner VALUES ('after', 1, 1)"))
    crossing.join(PATIENCE)
    other.close()
    with maria.connect() as connection:
        rows = connection.execute(
            text("SELECT id FROM batch_runner WHERE id IN ('before','after')")
        )
        assert rows.all() == []
