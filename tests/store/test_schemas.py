"""Two schemas of one PostgreSQL database: nothing of one is seen or locked by the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, make_url, select, text
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateSchema

from batchmill import Runner, RunnerConfig
from batchmill.errors import CallerBusy, InvalidInput, JobNotFound, NotMigrated
from batchmill.records import Limits
from batchmill.runner import Result
from batchmill.store import BatchJobRow, BatchRepository, create_store_engine, metadata, migrate
from tests.store.support import HOUR, done, exchange, finish, job, submit

ONE, OTHER = "one", 'Oth\'er "%s" :x'
NAMES = [ONE, OTHER]


@pytest.fixture(scope="module")
def engine(postgresql_server: str) -> Iterator[Engine]:
    """An engine on a database with two migrated schemas; the default one has no tables."""
    server = create_store_engine(postgresql_server, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE IF EXISTS two_schemas"))
        connection.execute(text("CREATE DATABASE two_schemas"))
    server.dispose()
    made = create_store_engine(make_url(postgresql_server).set(database="two_schemas"))
    for name in NAMES:
        with made.begin() as connection:
            connection.execute(CreateSchema(name))
        migrate.upgrade(made, schema=name)
    yield made
    assert made.pool.checkedout() == 0
    made.dispose()


@pytest.fixture
def both(engine: Engine) -> tuple[BatchRepository, BatchRepository]:
    """A repository on each, both empty."""
    for name in NAMES:
        with in_schema(engine, name) as session:
            for table in reversed(metadata.sorted_tables):
                if table.name != "batch_total":
                    session.execute(table.delete())
            session.execute(metadata.tables["batch_total"].update().values(nbytes=0))
            session.commit()
    return BatchRepository(engine, schema=ONE), BatchRepository(engine, schema=OTHER)


def in_schema(engine: Engine, name: str) -> Session:
    """A session in which our models mean the tables of a schema, as an application makes it."""
    return Session(engine.execution_options(schema_translate_map={None: name}))


def turn_number(engine: Engine, name: str) -> int:
    """The number that the schema's sequence gave last."""
    quoted = name.replace('"', '""').replace(":", "\\:")
    with engine.connect() as connection:
        return connection.execute(
            text(f'SELECT last_value FROM "{quoted}".batch_turn_number')
        ).scalar_one()


def test_jobs_are_apart(both) -> None:
    """The same id, caller and key in each are two jobs; what one holds the other doesn't know."""
    one, other = both
    assert submit(one, "a", 2).job_id == submit(other, "a", 3).job_id == "a"
    submit(one, "b")
    assert [found.id for found in other.list_jobs()] == ["a"]
    assert (one.count_live_jobs(), other.count_live_jobs()) == (2, 1)
    assert [len(store.get_targets("a") or []) for store in both] == [2, 3]
    with pytest.raises(JobNotFound):
        other.touch_job("b", now=1)


def test_idempotency_is_apart(both) -> None:
    """A key of one schema answers in that schema only."""
    one, other = both
    submit(one, "a", idem_key="k")
    assert one.find_job_by_idem_key("c", "k", now=100, ttl=HOUR) == "a"
    assert other.find_job_by_idem_key("c", "k", now=100, ttl=HOUR) is None


def test_caps_are_apart(both) -> None:
    """A full schema rejects, and the other one still takes a job."""
    one, other = both
    limits = Limits(targets_per_job=9, jobs_per_caller=1, jobs_total=1)
    submit(one, "a")
    assert submit(one, "b", limits=limits).rejected is CallerBusy
    assert submit(other, "b", limits=limits).job_id == "b"


def test_claims_are_apart(both) -> None:
    """An exchange claims from its own schema, and a token of one is nothing in the other."""
    one, other = both
    submit(one, "a")
    assert not exchange(other).claims
    (claim,) = exchange(one).claims
    submit(other, "a")
    assert exchange(other, [done(claim)], want=0).refused == [claim.token]
    assert exchange(one, [done(claim)], want=0).stored == [claim.token]


def test_bytes_and_removals_are_apart(both) -> None:
    """Byte totals, sweeps, evictions and stats are of one schema."""
    one, other = both
    finish(one, "a", '"123"')
    finish(other, "a", '"12345"')
    assert (one.nbytes(), other.nbytes()) == (5, 7)
    assert one.evict_oldest(max_bytes=0) == 1
    assert one.sweep(now=10**6, ttl=timedelta(0)) == 0
    assert (one.stats().jobs, other.stats().jobs) == ({}, {"done": 1})
    assert (one.nbytes(), other.nbytes()) == (0, 7)


def test_lost_runners_are_apart(both) -> None:
    """release_lost and mark_in_flight_failed leave the other schema's jobs as they are."""
    one, other = both
    for store in both:
        submit(store, "a")
        exchange(store)
    assert one.release_lost(now=10**6, hold_for=1, max_attempts=9, limit=9).put_back == 1
    assert one.mark_in_flight_failed("restart", now=10**6) == 1
    found = other.get_targets("a")
    assert found is not None
    assert found[0].status == "running"
    assert other.count_live_jobs() == 1


def test_sequences_are_apart(both, engine: Engine) -> None:
    """Turn numbers of one schema are not taken from the other's sequence."""
    one, _ = both
    before = [turn_number(engine, name) for name in NAMES]
    submit(one, "a")
    submit(one, "b")
    after = [turn_number(engine, name) for name in NAMES]
    assert (after[0] > before[0], after[1]) == (True, before[1])


def test_locks_are_apart(both) -> None:
    """While a transaction holds one schema's cap lock, a submit in the other doesn't wait."""
    one, other = both
    with one.engine.connect() as connection:
        submit(one.bound_to(connection), "a")
        waiting = threading.Thread(target=submit, args=(one, "b"))
        waiting.start()
        submit(other, "a")
        exchange(other)
        assert waiting.is_alive()
        connection.rollback()
    waiting.join()
    assert [found.id for found in one.list_jobs()] == ["b"]


def test_bound_to_keeps_its_schema(both, engine: Engine) -> None:
    """Inside the application's transaction the tables are the schema's, whatever its search path.

    The application's own statements go on meaning what they meant.
    """
    one, other = both
    quoted = OTHER.replace('"', '""').replace("%", "%%")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'SET LOCAL search_path TO "{quoted}"', {})
        submit(one.bound_to(connection), "a")
        connection.execute(text("UPDATE batch_total SET turns = 0"))  # the application's: OTHER
        connection.commit()
    with Session(engine) as session:
        submit(other, "b", within=session)
        session.commit()
    assert [[found.id for found in store.list_jobs()] for store in both] == [["a"], ["b"]]


def test_models_in_a_schema(both, engine: Engine) -> None:
    """An application selects from a schema by SQLAlchemy's schema_translate_map."""
    one, _ = both
    submit(one, "a")
    with in_schema(engine, ONE) as session:
        assert session.scalars(select(BatchJobRow.id)).all() == ["a"]
    with in_schema(engine, OTHER) as session:
        assert session.scalars(select(BatchJobRow.id)).all() == []


def test_two_runners(both) -> None:
    """A runner on each schema fetches its own jobs and not one of the other's."""
    fetched: dict[str, list[str]] = {name: [] for name in NAMES}
    config = RunnerConfig(jobs_per_caller=9, poll_interval=timedelta(seconds=0.05))

    def fetch(_context, caller, target):
        fetched[caller.name].append(target.url)
        return Result(caller.name)

    runners = [
        Runner(store, fetch, config, resolve_caller=lambda _n, _c, of=name: Named(of))
        for store, name in zip(both, NAMES, strict=True)
    ]
    with runners[0], runners[1]:
        ids = [runner.submit(Named("who"), [f"u{n}"]) for n, runner in enumerate(runners)]
        ended = [runner.wait(i.job_id, 30) for runner, i in zip(runners, ids, strict=True)]
    assert [found.status for found in ended] == ["done", "done"]
    assert fetched == {ONE: ["u0"], OTHER: ["u1"]}


class Named:
    """A caller."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_wakes_are_apart(both) -> None:
    """A submit wakes who subscribed to its schema, and nobody else."""
    calls: list[str] = []
    arrived = threading.Semaphore(0)

    def waker(name: str):
        def wake() -> None:
            calls.append(name)
            arrived.release()

        return wake

    one, other = both
    with one.subscribe(waker(ONE)), other.subscribe(waker(OTHER)):
        calls.clear()
        while arrived.acquire(blocking=False):
            pass
        for store, job_id in ((other, "a"), (one, "b"), (other, "c")):
            submit(store, job_id)
            assert arrived.acquire(timeout=10)
    assert calls == [OTHER, ONE, OTHER]


def test_a_schema_without_tables(both, engine: Engine) -> None:
    """In a schema that was never migrated, or isn't there, a call says what to run."""
    for schema in (None, "missing"):
        store = BatchRepository(engine, schema=schema)
        with pytest.raises(NotMigrated, match="schema.*upgrade"):
            store.get_job("a")
        with pytest.raises(NotMigrated, match="schema.*upgrade"):
            submit(store, "a")
    assert both[0].count_live_jobs() == 0


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud83d", "é" * 32, "pg_temp", "$user", 7])
def test_names_that_are_no_schema(name, engine: Engine) -> None:
    """A name that can't be a schema's is InvalidInput that names the field."""
    with pytest.raises(InvalidInput, match=r"^schema: "):
        BatchRepository(engine, schema=name)


@pytest.mark.parametrize("url", ["sqlite://", "mariadb://u@h/d"])
def test_no_schemas_elsewhere(url: str) -> None:
    """SQLite and MariaDB have no schemas: naming one is InvalidInput."""
    with pytest.raises(InvalidInput, match=r"^schema: .*leave it out"):
        BatchRepository(create_store_engine(url), schema="one")


def test_by_hand(both) -> None:
    """Jobs made by hand are written in their schema."""
    one, other = both
    one.create_job(job("a"))
    assert (one.delete_job("a"), other.delete_job("a")) == (True, False)
