"""A store that fails, and what may be logged: spec/seed-001, rule 8."""

from __future__ import annotations

import logging
import random
import threading
from datetime import timedelta

import pytest

from batchmill.errors import (
    NotMigrated,
    RunnerClosed,
    StoreBusy,
    StoreFull,
    StoreUnavailable,
    TargetError,
)
from batchmill.runner import Hooks, Result
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, CLEO, PATIENCE, User, until


class Flaky:
    """A store whose runner's calls fail every now and then, before or after they took effect."""

    def __init__(self, store, names, *, seed=7, share=0.3, late=False):
        self._store, self._names, self._late = store, names, late
        self._random, self._share = random.Random(seed), share
        self._lock = threading.Lock()
        self.failures = 0

    def __getattr__(self, name):
        call = getattr(self._store, name)
        if name not in self._names:
            return call

        def flaky(*args, **named):
            with self._lock:
                fails = self._random.random() < self._share
                self.failures += fails
                kind = self._random.choice([StoreBusy, StoreUnavailable, StoreFull])
            if fails and not self._late:
                raise kind("https://secret.example/")
            answer = call(*args, **named)
            if fails:
                raise kind("https://secret.example/")
            return answer

        return flaky


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """A failed exchange is tried again soon."""
    from batchmill.runner import pauses

    monkeypatch.setattr(pauses, "FIRST_PAUSE", 0.002)
    monkeypatch.setattr(pauses, "LONGEST_PAUSE", 0.01)


def test_a_store_that_fails_now_and_then_loses_nothing(make, store, caplog):
    """Every outcome is kept until it is stored: each target is fetched exactly once."""
    calls = []

    def fetch(context, caller, target):
        calls.append(target.url)
        return Result("x")

    flaky = Flaky(store, {"exchange", "hold", "release_lost"})
    runner = make(on=flaky, fetch=fetch, workers=4, hold_for=timedelta(seconds=30))
    jobs = [
        runner.submit(caller, [f"{caller.name}{job}/{idx}" for idx in range(5)])
        for job in range(4)
        for caller in (ANNA, BERT, CLEO)
    ]
    for job in jobs:
        assert runner.wait(job.job_id, PATIENCE).status == "done"
    runner.close()
    assert flaky.failures > 0
    assert len(calls) == len(set(calls)) == 60
    assert "store error (Store" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("resolver", [None, lambda name, _: User(name)], ids=["local", "shared"])
def test_claims_of_an_exchange_whose_answer_was_lost_come_back(make, store, clock, resolver):
    """A commit whose answer never came: the hold lapses, and the target is put back."""
    flaky = Flaky(store, {"exchange"}, share=1.0, late=True)
    runner = make(
        on=flaky,
        clock=clock,
        hold_for=timedelta(seconds=10),
        resolve_caller=resolver,
    )
    job = runner.submit(ANNA, ["u"])
    until(lambda: runner.progress(job.job_id).status == "running")
    flaky._names = set()
    clock.advance(11)
    runner._parts.holder.step()
    runner.reconcile()
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_every_store_error_is_a_warning_with_the_job_id(make, store, caplog):
    """The id, the class, never the text (spec/seed-001, rule 8)."""
    flaky = Flaky(store, set(), share=1.0)

    def fetch(context, caller, target):
        flaky._names = {"exchange"}
        return Result("x")

    with caplog.at_level(logging.WARNING):
        runner = make(on=flaky, fetch=fetch)
        job = runner.submit(ANNA, ["u"])
        until(lambda: flaky.failures >= 2)
        flaky._names = set()
        runner.wait(job.job_id, PATIENCE)
    warnings = [each for each in caplog.records if "store error" in each.getMessage()]
    assert warnings
    assert all(each.levelno == logging.WARNING for each in warnings)
    assert any(job.job_id in each.getMessage() for each in warnings)


@pytest.mark.parametrize("name", ["hold", "sweep", "release_lost", "evict_oldest", "get_job"])
def test_a_service_outlives_a_store_error(make, store, name):
    """The loop is told to come back sooner, and goes on (cases.md S17)."""
    flaky = Flaky(store, set(), share=1.0)
    runner = make(on=flaky, start=False)
    runner.submit(ANNA, ["u"])
    flaky._names = {name}
    hold, sweep, release = runner._parts.loops
    loop = {"hold": hold, "release_lost": release}.get(name, sweep)
    usual = loop._period
    assert loop.turn() < usual
    flaky._names = set()
    assert loop.turn() == usual


def test_a_runner_starts_although_the_store_is_away(make, store):
    """A store error at start is logged; the runner finds the store when it is back."""
    flaky = Flaky(store, {"release_lost", "exchange", "hold", "subscribe"}, share=1.0)
    runner = make(on=flaky)
    until(lambda: flaky.failures >= 2)
    flaky._names = set()
    job = runner.submit(ANNA, ["u"])
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_a_runner_does_not_start_on_a_database_that_is_not_migrated(make):
    """That would never get better by itself: start raises."""

    class Store(MemoryStore):
        def release_lost(self, **_):
            raise NotMigrated("run an upgrade")

    runner = make(on=Store(), start=False)
    with pytest.raises(NotMigrated):
        runner.start()


@pytest.mark.parametrize("fails", [1, 3, 5, 7])
def test_a_start_that_gets_no_thread_leaves_none_behind(make, monkeypatch, fails):
    """The error comes out, and nobody works on for a runner that isn't there."""
    start, started = threading.Thread.start, []

    def rationed(thread):
        started.append(thread)
        if len(started) == fails:
            raise RuntimeError("can't start new thread")
        start(thread)

    runner = make(workers=4, start=False)
    monkeypatch.setattr(threading.Thread, "start", rationed)
    with pytest.raises(RuntimeError, match="new thread"):
        runner.start()
    monkeypatch.undo()
    until(lambda: not any(thread.is_alive() for thread in started))
    with pytest.raises(RunnerClosed):
        runner.submit(ANNA, ["u"])


def test_logs_carry_no_url_and_no_text(make, fetches, caplog):
    """Never a URL, a host, or an exception's text (spec/seed-001, rule 8)."""
    url = "https://user:password@host.example/path"

    def nested(context):
        try:
            raise ValueError(url)
        except ValueError as error:
            raise TypeError(url) from error

    fetches.answers[url] = nested
    fetches.answers[url + "?2"] = TargetError(url)
    with caplog.at_level(logging.DEBUG):
        runner = make()
        job = runner.submit(ANNA, [url, url + "?2", url + "?3"])
        runner.wait(job.job_id, PATIENCE)
        runner.cancel(job.job_id)
        runner.close()
    text = "\n".join(
        f"{each.getMessage()} {each.exc_text} {each.exc_info}" for each in caplog.records
    )
    assert "internal error, job" in text
    assert "TypeError < test_failures.py:" in text
    assert job.job_id in text
    for secret in ("host.example", "password", "user:"):
        assert secret not in text


def test_a_runner_logs_where_it_is_told_to(make, caplog):
    """logger= takes the place of batchmill.runner."""
    with caplog.at_level(logging.DEBUG):
        runner = make(logger=logging.getLogger("the.application"))
        runner.close()
    assert {each.name for each in caplog.records if "runner" in each.getMessage()} == {
        "the.application"
    }


@pytest.mark.parametrize("answer", [Result("x"), KeyError("x")], ids=["done", "internal"])
def test_a_logger_that_raises_ends_no_thread(make, fetches, answer):
    """A handler of the application's is no reason to stop (spec/seed-001, rule 8)."""

    class Broken(logging.Handler):
        def emit(self, record):
            raise OSError(record.levelname)

    logger = logging.Logger("broken")  # noqa: LOG001 - nobody else's
    logger.addHandler(Broken())
    fetches.answers.update(u=answer, v=answer)
    runner = make(logger=logger, hooks=Hooks(job=lambda _: 1 / 0))
    for url in "uv":
        job = runner.submit(ANNA, [url])
        assert runner.wait(job.job_id, PATIENCE).status.terminal
    runner.close()


def test_a_record_tells_where_it_was_logged(make, caplog):
    """Not the place where a logger's faults are caught."""
    with caplog.at_level(logging.INFO):
        make().close()
    assert {each.filename for each in caplog.records} == {"threads.py"}
