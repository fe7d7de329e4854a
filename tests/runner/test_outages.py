"""A store that is away for a while: what is logged, who waits, and what counts as lost."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from time import monotonic

import pytest

from batchmill.errors import StoreFull, StoreUnavailable
from batchmill.runner import Result, pauses
from batchmill.runner.logs import Log
from batchmill.runner.outages import Outages
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, PATIENCE, until


class Away(MemoryStore):
    """A store that can be sent away."""

    def __init__(self, **given) -> None:
        super().__init__(**given)
        self.away = False
        self.met: list[str] = []

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        asked = {"exchange", "hold", "release_lost", "get_job", "sweep", "evict_oldest", "now"}
        if name not in asked:
            return found

        def call(*args, **named):
            if self.away:
                self.met.append(name)
                raise StoreUnavailable("secret")
            return found(*args, **named)

        return call


@pytest.fixture
def away() -> Away:
    """A store that is there."""
    return Away()


@pytest.fixture
def told(caplog):
    """What was logged with these words in it."""
    caplog.set_level(logging.INFO)
    return lambda words: [r.getMessage() for r in caplog.records if words in r.getMessage()]


def outages() -> Outages:
    """Those of a runner that logs to the root."""
    return Outages(Log(logging.getLogger()))


def test_the_first_failure_is_news(told):
    """Of one kind, whichever service meets it, until every service has been answered."""
    known = outages()
    assert known.failed("exchange", StoreUnavailable())
    assert not known.failed("exchange", StoreUnavailable())
    assert not known.failed("hold", StoreUnavailable())
    known.answered("exchange")
    assert not known.failed("exchange", StoreUnavailable())
    known.answered("exchange")
    known.answered("hold")
    assert len(told("the store answers again, after 0.0 s")) == 1
    assert known.failed("hold", StoreUnavailable())


def test_another_kind_of_failure_is_news_too():
    """A full disk isn't hidden by a release that can't reach the store."""
    known = outages()
    assert known.failed("release", StoreUnavailable())
    assert known.failed("exchange", StoreFull())
    assert known.failed("hold", OSError())


def test_an_answer_without_a_failure_is_nothing(told):
    """Nobody hears of a store that always answers."""
    known, called = outages(), []
    known.back = lambda: called.append(1)
    known.answered("exchange")
    assert (told("answers"), called) == ([], [])
    known.failed("hold", StoreUnavailable())
    known.answered("exchange")
    assert (told("answers"), called) == ([], [])


def test_a_runner_says_once_that_its_store_is_away(make, away, told):
    """Not once a try: exchanges, holds and looks for lost work fail again and again."""
    gate = threading.Event()

    def fetch(context, caller, target):
        assert gate.wait(PATIENCE)
        return Result("x")

    runner = make(on=away, fetch=fetch, hold_for=timedelta(seconds=0.5))
    job = runner.submit(ANNA, ["u"])
    until(lambda: runner.progress(job.job_id).status == "running")
    away.away = True
    gate.set()
    until(lambda: away.met.count("exchange") > 2 and away.met.count("hold") > 2)
    away.away = False
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    until(lambda: told("answers again"))
    assert len(told("store error (")) == 1
    assert len(told("answers again")) == 1


def test_an_answer_to_anybody_ends_the_pause_of_the_exchange(make, away, monkeypatch):
    """A hold that succeeds again shows that there is no need to wait any longer."""
    monkeypatch.setattr(pauses, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(pauses, "LONGEST_PAUSE", 1000.0)
    gate = threading.Event()
    fetch = lambda *_: gate.wait(PATIENCE) and Result("x")  # noqa: E731
    runner = make(on=away, fetch=fetch, hold_for=timedelta(seconds=300))
    job = runner.submit(ANNA, ["u"])
    until(lambda: runner.progress(job.job_id).status == "running")
    away.away = True
    gate.set()
    until(lambda: "exchange" in away.met)
    hold = runner._parts.loops[0]
    hold.turn()
    away.away = False
    hold.turn()
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_who_waits_sits_an_outage_out(make, away):
    """A store that was there may go and come back; one that was never there is an error."""
    runner = make(on=away, start=False)
    job = runner.submit(ANNA, ["u"])
    away.away = True
    with pytest.raises(StoreUnavailable):
        runner.wait(job.job_id, 0.1)
    away.away = False
    changes = runner.watch(job.job_id)
    next(changes)
    away.away = True
    waiting = threading.Thread(target=lambda: next(changes, None))
    waiting.start()
    until(lambda: away.met.count("get_job") > 3)
    away.away = False
    away.cancel_job(job.job_id, now=0)
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_a_wait_of_bounded_patience_ends_in_an_outage(make, away):
    """TimeoutError, as when the job takes long."""
    runner = make(on=away, start=False)
    job = runner.submit(ANNA, ["u"])
    once = threading.Event()
    away_later = threading.Timer(0.05, lambda: (setattr(away, "away", True), once.set()))
    away_later.start()
    with pytest.raises(TimeoutError):
        runner.wait(job.job_id, 0.3)
    assert once.is_set()
    assert "get_job" in away.met


@pytest.fixture
def holder_of(make, away, clock):
    """The holder of a runner that holds for ten seconds, and does nothing by itself."""

    def held(**given):
        runner = make(on=away, clock=clock, hold_for=timedelta(seconds=10), start=False, **given)
        return runner._parts.holder

    return held


def test_a_runner_renews_before_it_releases(holder_of, away, clock):
    """Else, after an absence, its own holds would be the first that it takes for lost."""
    holder = holder_of()
    renewed = []
    away_hold = MemoryStore.hold
    away.hold = lambda *a, **n: (renewed.append(n["now"]), away_hold(away, *a, **n))[1]
    assert holder.may_release()
    clock.advance(4.9)
    assert holder.may_release()
    assert renewed == [1_000_000.0]
    clock.advance(0.1)
    assert holder.may_release()
    assert renewed == [1_000_000.0, 1_000_005.0]


def test_after_an_absence_others_get_time_to_come_back(holder_of, clock, monkeypatch):
    """Who was away for as long as a hold lasts takes nobody for lost for some seconds."""
    holder = holder_of()
    holder.step()
    clock.advance(10)
    assert not holder.may_release()
    later = monotonic() + pauses.LONGEST_PAUSE
    monkeypatch.setattr("batchmill.runner.services.monotonic", lambda: later - 0.5)
    assert not holder.may_release()
    monkeypatch.setattr("batchmill.runner.services.monotonic", lambda: later)
    assert holder.may_release()


def test_a_store_that_is_away_releases_nothing(holder_of, away, clock):
    """A look for lost work that can't renew first is no look."""
    holder = holder_of()
    holder.step()
    clock.advance(10)
    away.away = True
    with pytest.raises(StoreUnavailable):
        holder.may_release()
    away.away = False
    assert not holder.may_release()


def test_an_exchange_that_fails_after_the_end_is_not_tried_again(make, told):
    """A call that hung while the runner closed: its outcome is given up, its thread ends."""
    hangs, goes_on, calls = threading.Event(), threading.Event(), []

    class Hanging(MemoryStore):
        def exchange(self, runner_id, outcomes, **named):
            if not outcomes:
                return super().exchange(runner_id, outcomes, **named)
            calls.append(outcomes)
            hangs.set()
            assert goes_on.wait(PATIENCE)
            raise StoreUnavailable("secret")

    runner = make(on=Hanging())
    job = runner.submit(ANNA, ["u"])
    assert hangs.wait(PATIENCE)
    runner.close(0)
    goes_on.set()
    until(lambda: told(f"job {job.job_id}: an outcome could not be stored"))
    for thread in runner._parts.workers._threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert len(calls) == 1
