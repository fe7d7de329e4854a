"""Engines: ours, and what the application made itself."""

from __future__ import annotations

import gc
import os
import sqlite3
import sys
import threading
from contextlib import closing
from functools import partial

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.dialects import mssql
from sqlalchemy.pool import NullPool, QueuePool, SingletonThreadPool, StaticPool

from batchmill.errors import InvalidInput, StoreError
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.store.capabilities import capabilities_of
from tests.store.support import HOUR, done, exchange, finish, job, submit


def _pragma(engine: Engine, name: str) -> object:
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_each_connection_is_set_up(sqlite_url: str, durability: str, level: int) -> None:
    """WAL, foreign keys, a busy timeout and the durability asked for hold on a connection."""
    engine = create_store_engine(sqlite_url, durability=durability)
    assert _pragma(engine, "journal_mode") == "wal"
    assert _pragma(engine, "synchronous") == level
    assert _pragma(engine, "foreign_keys") == 1
    assert _pragma(engine, "busy_timeout") == 30_000
    engine.dispose()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no autocommit argument")
@pytest.mark.parametrize("autocommit", [True, False])
def test_each_connection_is_set_up_in_either_mode(sqlite_url: str, autocommit: bool) -> None:
    """The settings hold on a connection that never, or always, is in a transaction."""
    engine = create_store_engine(sqlite_url, connect_args={"autocommit": autocommit})
    assert _pragma(engine, "journal_mode") == "wal"
    assert _pragma(engine, "synchronous") == 2
    assert _pragma(engine, "foreign_keys") == 1
    with engine.connect() as connection:
        assert connection.connection.driver_connection.autocommit is autocommit
    engine.dispose()


def test_full_durability_is_the_default(sqlite_url: str) -> None:
    """Without a word, what was acknowledged survives a power cut."""
    engine = create_store_engine(sqlite_url)
    assert _pragma(engine, "synchronous") == 2
    engine.dispose()


def test_the_applications_arguments_win(sqlite_url: str) -> None:
    """What create_engine takes is passed on, the busy timeout included."""
    engine = create_store_engine(sqlite_url, connect_args={"timeout": 1.5}, pool_size=3)
    assert _pragma(engine, "busy_timeout") == 1500
    assert isinstance(engine.pool, QueuePool)
    assert engine.pool.size() == 3
    engine.dispose()


@pytest.mark.parametrize("given", ["off", None, 1])
def test_an_unknown_durability_is_refused(sqlite_url: str, given: object) -> None:
    """The error names the argument and what it takes."""
    with pytest.raises(InvalidInput, match="durability: must be 'full' or 'normal'"):
        create_store_engine(sqlite_url, durability=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["not a url", "", 5, None])
def test_a_url_that_is_none_is_refused_without_showing_it(url: object) -> None:
    """The error names the argument and an example, never what was given."""
    with pytest.raises(InvalidInput, match=r"^url: is not a database URL") as caught:
        create_store_engine(url)  # type: ignore[arg-type]
    assert "not a url" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://u:p@h/d", "postgresql+psycopg"),
        ("mariadb://u:p@h/d", "mariadb+pymysql"),
        ("postgresql+psycopg://u:p@h/d", "postgresql+psycopg"),
    ],
)
def test_bare_urls_mean_our_drivers(url: str, driver: str) -> None:
    """postgresql:// is psycopg 3 and mariadb:// is PyMySQL."""
    assert create_store_engine(url).url.drivername == driver


def test_a_database_not_yet_supported_is_refused() -> None:
    """A store on a database that is none of the three says so at once."""
    with pytest.raises(InvalidInput, match="engine: mssql with the driver") as caught:
        capabilities_of(mssql.dialect())
    assert "PostgreSQL with psycopg 3" in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_memory_works_with_several_threads(url: str) -> None:
    """cases.md S5: a database in memory is one for all threads, one of them at a time."""
    engine = create_store_engine(url)
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    threads = [threading.Thread(target=submit, args=(store, f"j{n}", 3)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.count_live_jobs() == 8
    engine.dispose()


@pytest.mark.parametrize("pool", [SingletonThreadPool, StaticPool, NullPool])
def test_pools_that_break_a_database_in_memory_are_refused(pool: type) -> None:
    """A pool that shares, or multiplies, a database in memory is named in the error."""
    engine = create_engine("sqlite://", poolclass=pool)
    with pytest.raises(InvalidInput, match=f"engine: {pool.__name__}"):
        BatchRepository(engine)
    engine.dispose()
    with pytest.raises(InvalidInput, match=f"engine: {pool.__name__}"):
        create_store_engine("sqlite://", poolclass=pool)


@pytest.mark.parametrize(("size", "overflow"), [(5, 10), (1, 1), (2, -1), (0, 1)])
def test_a_queue_of_several_connections_to_memory_is_refused(size: int, overflow: int) -> None:
    """Several connections to a database in memory would be several databases."""
    engine = create_engine("sqlite://", poolclass=QueuePool, pool_size=size, max_overflow=overflow)
    with pytest.raises(InvalidInput, match="engine: QueuePool on a database in memory"):
        BatchRepository(engine)


def test_static_pool_on_a_file_is_refused(sqlite_url: str) -> None:
    """One connection shared by threads would mix their transactions."""
    engine = create_engine(sqlite_url, poolclass=StaticPool)
    with pytest.raises(InvalidInput, match="engine: StaticPool shares one connection"):
        BatchRepository(engine)


@pytest.mark.parametrize("given", [None, "sqlite://", object()])
def test_no_engine_is_refused(given: object) -> None:
    """The error names the argument and its type."""
    with pytest.raises(InvalidInput, match="engine: must be an Engine"):
        BatchRepository(given)  # type: ignore[arg-type]


def test_a_schema_is_refused_where_there_are_none(engine: Engine) -> None:
    """SQLite has no schemas."""
    with pytest.raises(InvalidInput, match="schema: this database has no schemas"):
        BatchRepository(engine, schema="app")


def _with_begin_event(url: str) -> Engine:
    """The recipe of SQLAlchemy's own documentation for real transactions on SQLite."""
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _with_skipped_rollback(url: str) -> Engine:
    """AUTOCOMMIT, and SQLAlchemy told to leave rollbacks out in it (from 2.0.43 on)."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    engine.dialect.skip_autocommit_rollback = True
    return engine


JOINABLE = {
    "plain": create_engine,
    "null_pool": partial(create_engine, poolclass=NullPool),
    "begin_event": _with_begin_event,
    "immediate": partial(create_engine, connect_args={"isolation_level": "IMMEDIATE"}),
}
AUTOCOMMIT = {
    "autocommit": partial(create_engine, isolation_level="AUTOCOMMIT"),
    "skipped_rollback": _with_skipped_rollback,
    "driver_level": partial(create_engine, connect_args={"isolation_level": None}),
}
if sys.version_info >= (3, 12):
    JOINABLE["never_autocommit"] = partial(create_engine, connect_args={"autocommit": False})
    AUTOCOMMIT["driver_autocommit"] = partial(create_engine, connect_args={"autocommit": True})
HOSTS = JOINABLE | AUTOCOMMIT


def _writable(url: str) -> bool:
    """Nobody has left a transaction open on the file."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
    return True


@pytest.mark.parametrize("kind", HOSTS)
def test_an_engine_of_the_applications_works(sqlite_url: str, kind: str) -> None:
    """A whole life of jobs runs on any engine that the application may have made."""
    engine = HOSTS[kind](sqlite_url)
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    finish(store, "a", '{"content":"é"}')
    submit(store, "b")
    assert _writable(sqlite_url)
    assert store.stats().jobs == {"done": 1, "queued": 1}
    assert _writable(sqlite_url)
    assert store.nbytes() == len('{"content":"é"}'.encode())
    assert store.evict_oldest(max_bytes=0) == 1
    assert store.sweep(now=100 + 3600, ttl=HOUR) == 1
    assert store.list_jobs() == []
    engine.dispose()
    gc.collect()


@pytest.mark.parametrize("kind", JOINABLE)
def test_a_connection_of_the_applications_can_be_joined(sqlite_url: str, kind: str) -> None:
    """Upgrade and repository work in its transaction, and stand or fall with it."""
    engine = HOSTS[kind](sqlite_url)
    for end in ("rollback", "commit"):
        with engine.connect() as connection:
            migrate.upgrade(connection)
            getattr(connection, end)()
    store = BatchRepository(engine)
    for name, end in (("a", "rollback"), ("b", "commit")):
        with engine.connect() as connection:
            bound = store.bound_to(connection)
            submit(bound, name)
            assert bound.stats().jobs == {"queued": 1}
            getattr(connection, end)()
    assert [kept.id for kept in store.list_jobs()] == ["b"]
    engine.dispose()
    gc.collect()


@pytest.mark.parametrize("kind", AUTOCOMMIT)
def test_a_connection_in_autocommit_can_not_be_joined(sqlite_url: str, kind: str) -> None:
    """Nothing would commit or roll back what was written there: it is refused and not lost."""
    engine = HOSTS[kind](sqlite_url)
    with engine.connect() as connection:
        with pytest.raises(InvalidInput, match="connection: is in autocommit"):
            migrate.upgrade(connection)
        connection.rollback()
        migrate.upgrade(engine)
        bound = BatchRepository(engine).bound_to(connection)
        with pytest.raises(InvalidInput, match="connection: is in autocommit"):
            submit(bound, "a")
        assert bound.get_job("a") is None
    assert _writable(sqlite_url)
    engine.dispose()
    gc.collect()


@pytest.mark.parametrize("kind", HOSTS)
def test_a_failed_call_on_it_leaves_nothing(sqlite_url: str, kind: str) -> None:
    """A write that fails half-way is rolled back on any engine of the application's."""
    engine = HOSTS[kind](sqlite_url)
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER fail BEFORE INSERT ON batch_turn "
                "BEGIN SELECT RAISE(ABORT, 'no turn'); END"
            )
        )
    with pytest.raises(StoreError, match="constraint"):
        submit(store, "a", 3)
    assert _writable(sqlite_url)
    assert store.get_job("a") is None
    engine.dispose()
    gc.collect()


def test_an_engine_of_the_applications_is_not_changed(sqlite_url: str) -> None:
    """Its journal mode, its foreign keys and its events stay what they were."""
    engine = create_engine(sqlite_url)
    migrate.upgrade(engine)
    finish(BatchRepository(engine), "a")
    assert _pragma(engine, "journal_mode") == "delete"
    assert _pragma(engine, "foreign_keys") == 0
    engine.dispose()


def test_whoever_listens_hears_of_every_statement(engine: Engine) -> None:
    """The driver runs statements by itself only where no listener would miss them."""
    store = BatchRepository(engine)
    heard: list[str] = []
    store.get_job("a")

    @event.listens_for(engine, "before_cursor_execute")
    def _note(*args: object) -> None:
        heard.append(str(args[2]))

    store.get_job("a")
    submit(store, "a", 2)
    event.remove(engine, "before_cursor_execute", _note)
    assert heard[0].startswith("SELECT")
    assert len([text for text in heard if text.startswith("INSERT")]) == 3


def test_a_sweep_leaves_no_orphan_without_foreign_keys(sqlite_url: str) -> None:
    """cases.md 16: with foreign keys off no target outlives its job, and an id can be used anew."""
    engine = create_engine(sqlite_url)
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    for name in ("a", "b", "c"):
        submit(store, name, 5)
    (claim,) = exchange(store).claims
    exchange(store, [done(claim, '"old"')], want=0)
    assert store.sweep(now=100 + 3600, ttl=HOUR) == 3
    with engine.connect() as connection:
        for table in ("batch_target", "batch_turn"):
            assert connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() == 0
    submit(store, "a", 5)
    assert [target.result for target in store.get_targets("a") or ()] == [None] * 5
    engine.dispose()


def test_a_forked_child_opens_connections_of_its_own(engine: Engine) -> None:
    """cases.md S3: a child of fork shares no connection with its parent, and both go on."""
    store = BatchRepository(engine)
    store.create_job(job("before"))
    with engine.connect() as connection:
        inherited = id(connection.connection.driver_connection)
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with engine.connect() as connection:
                    own = id(connection.connection.driver_connection) != inherited
                store.create_job(job(f"child-{number}"))
                status = 0 if own else 2
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    store.create_job(job("after"))
    assert len(store.list_jobs()) == 6
