"""A runner whose database fails for a while: it lives, loses nothing, and finishes."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest

from batchmill.errors import RetryLater, StoreError, TargetError
from batchmill.runner import Hooks, Result, Runner, RunnerConfig, pauses
from batchmill.store import BatchRepository, transactions
from tests.runner.helpers import PATIENCE, User, until
from tests.support.fixtures import on_servers_for_long, on_sqlite
from tests.support.injection import (
    AFTER_COMMIT,
    BEFORE_COMMIT,
    BEFORE_STATEMENT,
    Outage,
    Points,
)
from tests.support.invariants import broken

JOBS, TARGETS = 6, 5
MET = 5
"""How often the runner has to meet a fault before it is gone."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """Tries follow each other quickly."""
    monkeypatch.setattr(pauses, "FIRST_PAUSE", 0.002)
    monkeypatch.setattr(pauses, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(transactions, "PATIENCE", 0.02)


class Work:
    """A fetch whose targets end in every way, and what the hooks were told of it.

    In the middle of it, ``begun`` is set, and it stops until it may ``go_on``.
    """

    def __init__(self, extra: str = "") -> None:
        self.extra = extra
        self.fetched: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def __call__(self, context, caller, target):
        with self._lock:
            self.fetched[target.url] += 1
            tries = self.fetched[target.url]
        if sum(self.fetched.values()) > JOBS:
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        if target.url.endswith("1") and tries == 1:
            raise RetryLater
        if target.url.endswith("2"):
            raise TargetError("not there")
        return Result([target.url, self.extra])

    def hooks(self) -> Hooks:
        """Hooks that count what was stored and what ended."""
        return Hooks(
            target=lambda error, *_: self.told.update(["failed" if error else "done"]),
            job=lambda outcome: self.told.update([f"job {outcome}"]),
        )


def runner_on(store: BatchRepository, work: Work) -> Runner[User]:
    """A shared runner of three workers."""
    config = RunnerConfig(
        workers=3,
        worker_limit=3,
        jobs_per_caller=JOBS,
        jobs_total=JOBS,
        retry_wait=timedelta(milliseconds=1),
        poll_interval=timedelta(milliseconds=5),
        hold_for=timedelta(seconds=30),
    )
    return Runner(store, work, config, hooks=work.hooks(), resolve_caller=lambda n, _: User(n))


def submitted(runner: Runner[User]) -> list[str]:
    """Jobs whose targets end done, busy once and then done, and failed."""
    urls = [[f"{job}-{idx}" for idx in range(TARGETS)] for job in range(JOBS)]
    return [runner.submit(User("u"), targets).job_id for targets in urls]


def check_ended(database, runner, jobs, work: Work) -> None:
    """Every job has ended once, with every target stored once, and told once."""
    runner.drain(PATIENCE)
    assert [runner.progress(job).status for job in jobs] == ["partial"] * JOBS
    runner.close()
    assert broken(database, logged=True) == []
    expected = {"done": JOBS * (TARGETS - 1), "failed": JOBS}
    stored = Counter(
        dict(database.query("SELECT status, count(*) FROM finish_log GROUP BY status"))
    )
    assert stored == expected
    assert work.told == expected | {"job created": JOBS, "job partial": JOBS}


@contextmanager
def injected(database, store, points, kind):
    """The driver raises at each of these points until the end."""
    outage = Outage(points, lambda: database.fault(kind))
    store.points.listener = outage
    yield lambda: outage.wait_for(MET, PATIENCE)
    outage.end()


@contextmanager
def locked(database, store):
    """Somebody else writes all the time."""
    with database.locked():
        yield lambda: _met_failures(store)


@contextmanager
def full(database, store):
    """The disk is full."""
    database.limit_room(store.engine, 0)
    yield lambda: _met_failures(store)
    database.limit_room(store.engine, None)


@contextmanager
def read_only(database, store):
    """The connections may only read."""
    database.forbid_writes(store.engine, True)
    yield lambda: _met_failures(store)
    database.forbid_writes(store.engine, False)


def _met_failures(store) -> None:
    until(lambda: store.failures >= MET)


REAL = {"locked": locked, "read-only": read_only}


@pytest.fixture
def flaky(database):
    """A repository whose faults a test chooses; how often an exchange failed is counted."""
    database.log_finishes()
    store = database.store(**database.impatient)
    store.points = Points(store.engine)
    store.failures, exchange = 0, store.exchange

    def counted(*args, **named):
        try:
            return exchange(*args, **named)
        except StoreError:
            store.failures += 1
            raise

    store.exchange = counted
    return store


def fail_in_the_middle(database, store, fault) -> None:
    """Begin, fail for a while, and end."""
    work = Work()
    runner = runner_on(store, work)
    jobs = submitted(runner)
    with runner:
        assert work.begun.wait(PATIENCE)
        with fault as met:
            work.go_on.set()
            met()
        check_ended(database, runner, jobs, work)


@on_servers_for_long
@pytest.mark.parametrize("points", [(BEFORE_STATEMENT,), (BEFORE_COMMIT,)], ids=str)
@pytest.mark.parametrize("kind", ["busy", "full", "read-only", "input/output", "corrupt"])
def test_a_database_that_fails_for_a_while(database, flaky, kind, points):
    """Whatever the driver raises, and wherever: each target is stored once, and told once."""
    fail_in_the_middle(database, flaky, injected(database, flaky, points, kind))


@on_servers_for_long
@pytest.mark.parametrize("name", REAL)
def test_a_database_that_refuses_writes_for_a_while(database, flaky, name):
    """A writer that doesn't end, or a file without permission: nothing is stored meanwhile."""
    work = Work()
    runner = runner_on(flaky, work)
    jobs = submitted(runner)
    with REAL[name](database, flaky) as met:
        before = database.dump()
        runner.start()
        met()
        assert database.dump() == before
        assert work.fetched == {}
    work.go_on.set()
    check_ended(database, runner, jobs, work)


@on_sqlite
def test_a_disk_that_is_full_for_a_while(database, flaky):
    """Results wait in the runner until there is room; reads go on meanwhile (cases.md S22)."""
    work = Work(extra="x" * 100_000)
    runner = runner_on(flaky, work)
    jobs = submitted(runner)
    with runner:
        assert work.begun.wait(PATIENCE)
        with full(database, flaky) as met:
            done = [runner.progress(job).targets_done for job in jobs]
            work.go_on.set()
            met()
            assert [runner.progress(job).targets_done for job in jobs] == done
        check_ended(database, runner, jobs, work)
    assert max(work.fetched.values()) == 2


@on_servers_for_long
def test_a_submit_into_a_failing_database(database, flaky):
    """It raises our error, keeps nothing, and succeeds once the fault is gone."""
    work = Work()
    runner = runner_on(flaky, work)
    with injected(database, flaky, (BEFORE_COMMIT,), "full"), pytest.raises(StoreError):
        runner.submit(User("u"), ["0-0"])
    assert database.query("SELECT count(*) FROM batch_job") == [(0,)]
    assert not runner.submit(User("u"), ["0-0"]).reused
    with injected(database, flaky, (AFTER_COMMIT,), "input/output"), pytest.raises(StoreError):
        runner.submit(User("u"), ["0-1"])
    assert runner.submit(User("u"), ["0-1"]).reused


@on_servers_for_long
def test_commits_whose_answers_are_lost(database, flaky):
    """What was stored is stored once; what was claimed comes back when its hold has lapsed."""
    work = Work()
    runner = runner_on(flaky, work)
    jobs = submitted(runner)
    with runner:
        assert work.begun.wait(PATIENCE)
        with injected(database, flaky, (AFTER_COMMIT,), "input/output") as met:
            work.go_on.set()
            met()
        flaky.release_lost(now=flaky.now() + 3600, hold_for=30, max_attempts=3, limit=100)
        runner.drain(PATIENCE)
    assert [runner.progress(job).status for job in jobs] == ["partial"] * JOBS
    assert broken(database, logged=True) == []
