"""Cases from the field about a database: its pool, its pages, its size, its busy moments."""

from __future__ import annotations

import sqlite3
import threading
from datetime import timedelta

import pytest
from sqlalchemy import event

from batchmill.errors import JobNotFound, StoreBusy
from batchmill.records import BatchTarget
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate, transactions
from tests.runner.helpers import PATIENCE, User
from tests.store.support import HOUR, exchange, finish, job, submit
from tests.support.fixtures import on_sqlite
from tests.support.injection import BEFORE_STATEMENT, Counts, Fault, Points, listening
from tests.support.invariants import broken

MANY = 8


def many_workers(store, fetch, **given) -> Runner:
    """A runner of eight workers, started."""
    config = RunnerConfig(workers=MANY, worker_limit=MANY, jobs_per_caller=99, jobs_total=99)
    return Runner(store, fetch, config, **given)


def drained(runner, jobs: int) -> set[str]:
    """Submit so many jobs of three targets, and wait for them."""
    ids = [runner.submit(User("u"), [f"{n}-{i}" for i in range(3)]).job_id for n in range(jobs)]
    return {runner.wait(each, PATIENCE).status for each in ids}


def test_case_s5_a_database_in_memory_and_several_workers():
    """sqlite:// with eight workers works off twenty jobs."""
    engine = create_store_engine("sqlite://")
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    with many_workers(store, lambda context, caller, target: Result(target.url)) as runner:
        assert drained(runner, 20) == {"done"}
    assert store.stats().targets == {"done": 60}
    engine.dispose()


@pytest.mark.parametrize("resolve", [None, lambda name, _: User(name)], ids=["local", "shared"])
def test_case_s18_a_pool_of_one_connection(database, resolve):
    """Eight workers on a pool of size 1 work; no connection is out while all of them fetch."""
    database.log_finishes()
    engine = database.engine(pool_size=1, max_overflow=0, pool_timeout=10)
    together, out, seen = threading.Barrier(MANY), [], []

    def fetch(context, caller, target):
        together.wait(PATIENCE)
        out.append(engine.pool.checkedout())
        together.wait(PATIENCE)
        seen.append(runner.progress(context.job_id).status)
        return Result("x")

    with many_workers(BatchRepository(engine), fetch, resolve_caller=resolve) as runner:
        assert drained(runner, MANY) == {"done"}
    assert out == [0] * MANY * 3
    assert seen == ["running"] * MANY * 3
    assert broken(database, logged=True) == []


@on_sqlite
@pytest.mark.parametrize(
    ("count", "size"),
    [(1000, 1000), pytest.param(1000, 10**6, marks=[pytest.mark.soak, pytest.mark.timeout(300)])],
    ids=["short", "full"],
)
def test_case_s8_progress_of_a_large_job(database, store, count, size):
    """A poll is one statement, whatever the number of targets, and reads no body of a result."""
    store.create_job(job("a", targets_total=count))
    for start in range(0, count, 50):
        rows = [
            BatchTarget("", idx, f"u{idx}", "{}", "done", '"' + "x" * (size - 2) + '"')
            for idx in range(start, start + 50)
        ]
        store.put_targets("a", rows)
    reading = database.store()
    runner = Runner(reading, print)

    @event.listens_for(reading.engine, "connect")
    def _forbid_results(connection: sqlite3.Connection, _record: object) -> None:
        def allow(action, table, column, *_):
            body = action == sqlite3.SQLITE_READ and (table, column) == ("batch_target", "result")
            return sqlite3.SQLITE_DENY if body else sqlite3.SQLITE_OK

        connection.set_authorizer(allow)

    with listening(Points(reading.engine), Counts()) as counts:
        assert runner.progress("a").nbytes == count * size
        assert counts.of(BEFORE_STATEMENT) == 1
        report = runner.status("a", with_results=False)
        assert len(report.targets) == count
        assert counts.of(BEFORE_STATEMENT) == 3
    with pytest.raises(Exception, match="database reported an error"):
        reading.get_targets("a", limit=1)  # the guard works
    database.close()
    database.erase()


def test_case_s17_a_busy_database_during_a_read_or_a_heartbeat(database, store, monkeypatch):
    """Both are tried again inside, and succeed."""
    pauses = []
    monkeypatch.setattr(transactions.time, "sleep", pauses.append)
    submit(store, "a")
    (claim,) = exchange(store).claims
    calls = {
        "get_job": lambda: store.get_job("a").id == "a",
        "get_targets": lambda: len(store.get_targets("a", max_bytes=1)) == 1,
        "count_live_jobs": lambda: store.count_live_jobs() == 1,
        "list_jobs": lambda: len(store.list_jobs()) == 1,
        "nbytes": lambda: store.nbytes() == 0,
        "stats": lambda: store.stats().jobs == {"running": 1},
        "hold": lambda: not store.hold("r", [claim.token], now=100, hold_for=60).lost,
        "release_lost": lambda: (
            not store.release_lost(now=100, hold_for=60, max_attempts=3, limit=9).put_back
        ),
        "an idle exchange": lambda: not exchange(store).claims,
    }
    points = Points(store.engine)
    for name, call in calls.items():
        with listening(points, Fault(BEFORE_STATEMENT, 0, lambda: database.fault("busy"))):
            assert call(), name
    assert len(pauses) == len(calls)


def test_case_s17_no_runner_dies_of_a_busy_database(database, monkeypatch):
    """A heartbeat that stays busy is logged and comes again; the work goes on meanwhile."""
    monkeypatch.setattr(transactions, "PATIENCE", 0.01)
    store = database.store(**database.impatient)
    with many_workers(store, lambda *_: Result("x")) as runner:
        with database.locked():
            heartbeat, *others = runner._parts.loops
            assert heartbeat.turn() < heartbeat._period
            for loop in others:
                loop.turn()
            with pytest.raises(StoreBusy):
                runner.submit(User("u"), ["u"])
        monkeypatch.setattr(transactions, "PATIENCE", 10.0)  # the runner's own writes are no lock
        assert drained(runner, 3) == {"done"}
    assert broken(database) == []


@pytest.mark.parametrize("call", ["sweep", "evict"])
@pytest.mark.soak
@pytest.mark.timeout(300)
def test_case_25_seventy_thousand_jobs_in_one_call(database, store, call):
    """One call sweeps, or evicts, 70,000 jobs: all are gone."""
    with database.writing() as run:
        for start in range(0, 70_000, 500):
            names = [f"j{number}" for number in range(start, start + 500)]
            row = "(?, 'c', 'r', 'k', 'done', '', 1, 1, 100, 100, 2)"
            run(f"INSERT INTO batch_job VALUES {', '.join([row] * len(names))}", *names)
            row = "(?, 0, 'u', '{}', 'done', 2, '{}')"
            columns = "job_id, idx, url, options, status, nbytes, result"
            values = ", ".join([row] * len(names))
            run(f"INSERT INTO batch_target ({columns}) VALUES {values}", *names)
        run("UPDATE batch_total SET nbytes = 140000 WHERE shard = 0")
    if call == "sweep":
        assert store.sweep(now=100 + 3600, ttl=HOUR) == 70_000
    else:
        assert store.evict_oldest(max_bytes=0) == 70_000
    assert store.stats().jobs == {}
    assert broken(database, submitted=False) == []


@on_sqlite
def test_case_s19_the_file_shrinks_on_vacuum(database, store):
    """Evict 90 % of the bytes, then VACUUM, the documented maintenance call: the file shrinks."""
    for number in range(50):
        finish(store, f"j{number:02}", '"' + "x" * 50_000 + '"')
    assert store.evict_oldest(max_bytes=store.nbytes() // 10) == 45
    database.query("PRAGMA wal_checkpoint(TRUNCATE)")
    before, _ = database.sizes()
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    after, _ = database.sizes()
    assert after < before * 0.2
    assert [len(store.get_targets(kept.id)[0].result) for kept in store.list_jobs()] == [50_002] * 5
    assert broken(database) == []


def test_case_16_through_an_engine_of_ours(database, store):
    """Sweep 3 jobs of 5 targets: no target without a job, and a reused id shows nothing old."""
    for name in ("a", "b", "c"):
        submit(store, name, 5)
    assert store.sweep(now=100 + 3600, ttl=timedelta(hours=1)) == 3
    assert database.query("SELECT count(*) FROM batch_target") == [(0,)]
    submit(store, "a", 5)
    assert [target.result for target in store.get_targets("a")] == [None] * 5
    with pytest.raises(JobNotFound):
        list(Runner(store, print).results("b"))
