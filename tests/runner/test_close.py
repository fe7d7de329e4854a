"""Ending: drain, close, and what a runner leaves behind."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from time import monotonic

import pytest

from batchmill.errors import BatchmillError, RetryLater, RunnerClosed, StoreUnavailable
from batchmill.records import Settled
from batchmill.runner import Hooks, Result
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, PATIENCE, Fetches, User, until


def test_close_waits_for_the_fetch_in_flight_and_stores_it(make, fetches):
    """spec/seed-001, Interfaces: Close waits for an in-flight fetch to return."""
    fetches.hold("u1")
    runner = make()
    job = runner.submit(ANNA, ["u1", "u2"])
    fetches.wait_for("u1")
    closing = threading.Thread(target=runner.close)
    closing.start()
    until(lambda: fetches.contexts["u1"].cancelled)
    assert closing.is_alive()
    fetches.release()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert [each.status for each in runner.status(job.job_id).targets] == ["done", "pending"]
    assert fetches.calls == ["u1"]


def test_close_puts_back_what_does_not_end_in_time(make, fetches):
    """No target stays running, and a late outcome is dropped (cases.md 20)."""
    fetches.hold("u1")
    runner = make(workers=2)
    job, other = runner.submit(ANNA, ["u1"]), runner.submit(BERT, ["v1"])
    fetches.wait_for("u1")
    runner.wait(other.job_id, PATIENCE)
    begun = monotonic()
    runner.close(timeout=0.2)
    assert monotonic() - begun < 3
    assert runner.status(job.job_id).targets[0].status == "pending"
    fetches.release()
    for thread in runner._parts.workers._threads:
        thread.join(PATIENCE)
    assert runner.status(job.job_id).targets[0].status == "pending"
    assert runner.progress(job.job_id).targets_done == 0


def test_a_fetch_that_gives_up_at_a_close_was_not_busy(make, store):
    """RetryLater from a fetch that was told to stop starts no time of being busy."""
    fetches = Fetches(u=_give_up)
    runner = make(fetch=fetches, resolve_caller=lambda name, caller_class: User(name))
    runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    runner.close()
    given = {"queue": "default", "want": 1, "shared": True, "now": 2_000_000_000.0}
    (claim,) = store.exchange("other", [], hold_for=60, max_bytes=10**9, **given).claims
    assert (claim.attempt, claim.busy_since) == (2, None)


def _give_up(context):
    assert context.wait(PATIENCE)
    raise RetryLater("stopped")


def test_a_shared_job_goes_on_elsewhere_after_a_close(make):
    """What was put back is taken by the next runner at once."""
    stuck, quick = Fetches(), Fetches()
    stuck.hold("u")

    def resolve(name, caller_class):
        return User(name)

    first = make(fetch=stuck, resolve_caller=resolve)
    job = first.submit(ANNA, ["u"])
    stuck.wait_for("u")
    first.close(timeout=0)
    second = make(fetch=quick, resolve_caller=resolve)
    assert second.wait(job.job_id, PATIENCE).status == "done"
    stuck.release()


def test_close_is_idempotent_and_works_without_a_start(make):
    """Again, from several threads, or before start: fine; a start after it is not."""
    runner = make(start=False)
    closers = [threading.Thread(target=runner.close) for _ in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(PATIENCE)
    runner.close()
    with pytest.raises(RunnerClosed):
        runner.start()


def test_a_with_block_starts_and_closes(make, fetches):
    """with starts the runner and closes it at the end."""
    with make(start=False) as runner:
        job = runner.submit(ANNA, ["u"])
        runner.wait(job.job_id, PATIENCE)
    with pytest.raises(RunnerClosed):
        runner.submit(ANNA, ["v"])
    assert not any(thread.is_alive() for thread in runner._parts.workers._threads)


def test_a_fetch_may_close_its_own_runner(make):
    """It can't wait for itself: its target is put back."""
    runner = None

    def fetch(context, caller, target):
        runner.close()
        return Result("late")

    runner = make(fetch=fetch, start=False)
    job = runner.submit(ANNA, ["u"])
    runner.start()
    until(lambda: runner._closed)
    assert runner.status(job.job_id).targets[0].status == "pending"


def test_outcomes_are_stored_at_a_close_although_the_store_was_busy(make, fetches, monkeypatch):
    """What was kept during a failure is tried at once when the runner closes."""
    from batchmill.runner import pauses

    monkeypatch.setattr(pauses, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(pauses, "LONGEST_PAUSE", 3600.0)

    class Store(MemoryStore):
        away = False
        failures = 0

        def exchange(self, *args, **named):
            if self.away:
                self.failures += 1
                raise StoreUnavailable("gone")
            return super().exchange(*args, **named)

    store = Store()
    fetches.hold("u")
    runner = make(on=store)
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    store.away = True
    fetches.release()
    until(lambda: store.failures == 1)
    store.away = False
    runner.close()
    assert runner.progress(job.job_id).status == "done"


def test_a_close_ends_although_the_store_is_gone(make, fetches, caplog):
    """What can't be stored is logged by its job, and the hold lapses by itself."""

    class Store(MemoryStore):
        away = False

        def exchange(self, *args, **named):
            if self.away:
                raise StoreUnavailable("gone")
            return super().exchange(*args, **named)

        def leave(self, runner_id):
            raise StoreUnavailable("gone")

    store = Store()
    fetches.hold("u")
    runner = make(on=store)
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    store.away = True
    runner.close(timeout=0.1)
    fetches.release()
    assert f"job {job.job_id}: an outcome could not be stored" in caplog.text


def test_a_bounded_close_returns_although_the_store_blocks(make, fetches):
    """A database that somebody else has locked holds up no shutdown."""
    answering = threading.Event()

    class Store(MemoryStore):
        blocks = False

        def exchange(self, *args, **named):
            assert not self.blocks or answering.wait(PATIENCE)
            return super().exchange(*args, **named)

        def leave(self, runner_id):
            assert not self.blocks or answering.wait(PATIENCE)
            super().leave(runner_id)

    store = Store()
    fetches.hold("u")
    runner = make(on=store)
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    store.blocks = True
    begun = monotonic()
    runner.close(timeout=0)
    assert monotonic() - begun < 3
    answering.set()
    until(lambda: runner.status(job.job_id).targets[0].status == "pending")
    fetches.release()


def test_drain_works_off_what_was_submitted(make, fetches):
    """It takes no more, returns when all is done, retries included."""
    tries = []

    def busy(context):
        tries.append(1)
        if len(tries) < 3:
            raise RetryLater
        return Result("x")

    fetches.answers["u2"] = busy
    runner = make(workers=2)
    jobs = [runner.submit(caller, ["u1", "u2", "u3"]) for caller in (ANNA, BERT)]
    runner.drain(PATIENCE)
    assert [runner.progress(job.job_id).status for job in jobs] == ["done", "done"]
    with pytest.raises(RunnerClosed):
        runner.submit(ANNA, ["u"])


def test_drain_gives_up_after_its_timeout(make, fetches):
    """TimeoutError, and the runner goes on with what it has."""
    fetches.hold("u")
    runner = make()
    job = runner.submit(ANNA, ["u"])
    with pytest.raises(TimeoutError):
        runner.drain(timeout=0.05)
    fetches.release()
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_drain_ends_when_the_runner_is_closed(make, fetches):
    """RunnerClosed, and before a start a clear error: it would never end."""
    unstarted = make(start=False)
    with pytest.raises(BatchmillError, match="start"):
        unstarted.drain()
    assert unstarted.submit(ANNA, ["v"]).job_id  # it was refused, so the door is still open
    unstarted.close()
    fetches.hold("u")
    runner, raised = make(), []
    runner.submit(ANNA, ["u"])
    fetches.wait_for("u")

    def draining():
        try:
            runner.drain()
        except RunnerClosed as error:
            raised.append(error)

    thread = threading.Thread(target=draining)
    thread.start()
    until(lambda: runner._door.shut)
    runner.close(timeout=0)
    thread.join(PATIENCE)
    assert len(raised) == 1
    fetches.release()


def test_an_idle_drain_returns_at_once(make):
    """Also when the last look at the store was long ago."""
    runner = make(poll_interval=timedelta(hours=1))
    runner.drain(PATIENCE)
    runner.drain(PATIENCE)


def test_a_push_from_the_store_wakes_a_worker(make, fetches):
    """Where a store has one, nobody waits for the next poll; close ends the subscription."""
    from contextlib import contextmanager

    class Store(MemoryStore):
        wake = None
        ended = False

        @contextmanager
        def _pushing(self, wake):
            self.wake = wake
            yield
            self.ended = True

        def subscribe(self, wake, *, queue=None):
            assert queue == "default"
            return self._pushing(wake)

    store = Store()
    given = {"on": store, "resolve_caller": lambda name, _: User(name)}
    runner = make(poll_interval=timedelta(hours=1), **given)
    runner.drain(PATIENCE)
    submitter = make(start=False, **given)
    job = submitter.submit(ANNA, ["u"])
    store.wake()
    fetches.wait_for("u")
    until(lambda: submitter.progress(job.job_id).status == "done")
    runner.close()
    assert store.ended


def test_a_close_waits_for_a_submit_that_is_under_way(make):
    """No job is stored for a runner that has already said that it left."""

    class Store(MemoryStore):
        order: list[str] = []  # noqa: RUF012 - one store, one list
        inside, go_on = threading.Event(), threading.Event()

        def submit_job(self, *args, **named):
            self.inside.set()
            assert self.go_on.wait(PATIENCE)
            self.order.append("submitted")
            return super().submit_job(*args, **named)

        def leave(self, runner_id):
            self.order.append("left")
            super().leave(runner_id)

    store = Store()
    runner = make(on=store, start=False)
    submitting = threading.Thread(target=runner.submit, args=(ANNA, ["u"]))
    submitting.start()
    assert store.inside.wait(PATIENCE)
    closing = threading.Thread(target=runner.close)
    closing.start()
    until(lambda: runner._door.shut)
    store.go_on.set()
    closing.join(PATIENCE)
    submitting.join(PATIENCE)
    assert store.order == ["submitted", "left"]


def test_a_bounded_close_does_not_wait_for_an_unbounded_one(make, fetches):
    """Whoever leaves at once can, also when another thread waits for every fetch."""
    fetches.hold("u")
    runner = make()
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    patient = threading.Thread(target=runner.close)
    patient.start()
    until(lambda: fetches.contexts["u"].cancelled)
    runner.close(timeout=0)
    assert runner.status(job.job_id).targets[0].status == "pending"
    patient.join(PATIENCE / 2)  # the fetch is held for longer
    assert not patient.is_alive()
    fetches.release()


def test_a_hook_that_the_end_calls_may_close_the_runner(make, fetches, caplog):
    """The thread that ends the runner doesn't wait for itself."""

    class Store(MemoryStore):
        def exchange(self, runner_id, outcomes, **named):
            exchange = super().exchange(runner_id, outcomes, **named)
            ended = [Settled(each.job_id, "failed", 0) for each in outcomes]
            return replace(exchange, settled=ended)

    closed = []

    def close(outcome):
        if outcome == "failed":
            runner.close()
            closed.append(outcome)

    fetches.hold("u")
    runner = make(on=Store(), hooks=Hooks(job=close))
    runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    runner.close(timeout=1)
    assert closed == ["failed"]
    assert "doesn't answer" not in caplog.text
    fetches.release()


def test_a_hook_may_close_the_runner(make):
    """From a worker's thread or from the closing one, it doesn't wait for itself."""
    runner = None
    runner = make(hooks=Hooks(target=lambda *_: runner.close()), workers=2, start=False)
    job = runner.submit(ANNA, ["u1", "u2"])
    runner.start()
    until(lambda: runner._closed)
    assert runner.progress(job.job_id).targets_done == 1
