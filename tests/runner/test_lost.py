"""Holds, fences and lost runners: more than one runner on a database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from batchmill.errors import RetryLater, StoreUnavailable
from batchmill.runner import Hooks, Result
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, PATIENCE, Fetches, User, until

HOLD = timedelta(seconds=10)


def resolve(name: str, caller_class: str) -> User:
    """Makes a caller of any name."""
    return User(name)


def test_jobs_that_outlive_their_lease_survive_a_sweep(make, fetches, store, clock):
    """The hold renews the lease: not swept, stored, fetched once (cases.md 11)."""
    fetches.hold("u")
    ttl = timedelta(seconds=2)
    runner = make(clock=clock, ttl=ttl, poll_interval=timedelta(hours=1))
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    for _ in range(12):
        clock.advance(0.5)
        runner._parts.holder.step()
        assert store.sweep(now=clock(), ttl=ttl) == 0
    fetches.release()
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    assert fetches.calls == ["u"]


def test_holds_are_renewed_in_time(make):
    """Every min(hold_for, ttl) / 3, from a loop of its own (design.md section 4)."""
    for hold, ttl, period in [(60, 3600, 20), (60, 6, 2)]:
        given = {"hold_for": timedelta(seconds=hold), "ttl": timedelta(seconds=ttl)}
        hold_loop, sweep_loop, _ = make(start=False, **given)._parts.loops
        assert hold_loop._period == period
        assert sweep_loop._period == min(ttl / 10, 60)


def test_a_submit_says_when_its_runner_was_seen_to_the_millisecond(make, clock, fetches):
    """A runner of a short hold isn't taken for lost because its second was floored."""
    fetches.hold("u")
    clock.advance(0.9)
    first = make(clock=clock, hold_for=timedelta(seconds=1))
    second = make(clock=clock, hold_for=timedelta(seconds=1), start=False)
    clock.advance(0.05)
    job = first.submit(ANNA, ["u"])
    clock.advance(0.05)
    second.reconcile()
    assert first.progress(job.job_id).status.live


def test_a_ttl_of_less_than_a_second_is_no_hot_loop(make):
    """A fraction rounds up, as in the store (design.md section 3)."""
    hold_loop, sweep_loop, _ = make(start=False, ttl=timedelta(microseconds=1))._parts.loops
    assert (hold_loop._period, sweep_loop._period) == (1 / 3, 0.1)


def test_a_start_leaves_the_jobs_of_a_live_runner_alone(make, fetches, clock):
    """B recovers on the same database; A's job is untouched and ends done (cases.md 6)."""
    fetches.hold("u")
    first = make(clock=clock, hold_for=HOLD)
    job = first.submit(ANNA, ["u"])
    fetches.wait_for("u")
    clock.advance(9)
    first._parts.holder.step()
    clock.advance(9)
    second = make(clock=clock, hold_for=HOLD)
    assert not second.reconcile().settled
    fetches.release()
    assert first.wait(job.job_id, PATIENCE).status == "done"


def test_the_local_jobs_of_a_lost_runner_fail_and_make_room(make, fetches, clock):
    """After hold_for the next start ends them, and their caps are free (cases.md 3)."""
    lost = make(clock=clock, hold_for=HOLD, start=False)
    jobs = [lost.submit(caller, ["u"]) for caller in (ANNA, BERT)]
    clock.advance(11)
    runner = make(clock=clock, hold_for=HOLD, jobs_total=2)
    for job in jobs:
        ended = runner.progress(job.job_id)
        assert (ended.status, ended.error) == ("failed", "runner lost")
    third = runner.submit(User("third"), ["u"])
    assert runner.wait(third.job_id, PATIENCE).status == "done"


def test_a_late_start_does_not_lose_the_runners_own_jobs(make, clock):
    """What was submitted long before start runs: a start first says that it is alive."""
    runner = make(clock=clock, hold_for=HOLD, start=False)
    job = runner.submit(ANNA, ["u"])
    clock.advance(60)
    runner.start()
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_a_less_patient_runner_does_not_fail_the_jobs_of_another(make, fetches, clock):
    """A runner says at its start for how long it holds, before its first renewal."""
    fetches.hold("u")
    patient = make(clock=clock, hold_for=timedelta(seconds=60))
    job = patient.submit(ANNA, ["u"])
    fetches.wait_for("u")
    clock.advance(19)
    make(clock=clock, hold_for=timedelta(seconds=1))
    assert patient.progress(job.job_id).status == "running"
    fetches.release()
    assert patient.wait(job.job_id, PATIENCE).status == "done"


def test_the_local_jobs_of_a_closed_runner_fail_at_the_next_start(make, fetches, clock):
    """A close in order says so: nobody waits out its hold."""
    first = make(clock=clock, start=False)
    job = first.submit(ANNA, ["u"])
    first.close()
    assert first.progress(job.job_id).status == "queued"
    make(clock=clock)
    assert first.progress(job.job_id).error == "runner lost"


def test_a_local_job_is_only_taken_by_its_own_runner(make, fetches, clock):
    """Its caller is in that process's memory."""
    other_fetches = Fetches()
    first = make(clock=clock, start=False)
    other = make(clock=clock, fetch=other_fetches)
    shared = make(clock=clock, fetch=other_fetches, resolve_caller=resolve)
    job = first.submit(ANNA, ["u"])
    for runner in (other, shared):
        runner.drain(PATIENCE)
    assert other_fetches.calls == []
    first.start()
    assert first.wait(job.job_id, PATIENCE).status == "done"


def test_any_shared_runner_takes_a_shared_job(make, clock):
    """The caller is made anew from its name and class (design.md section 5)."""
    asked = []

    def recorded(name, caller_class):
        asked.append((name, caller_class))
        return User(name)

    submitter = make(clock=clock, start=False, resolve_caller=resolve)
    job = submitter.submit(ANNA, ["u"], caller_class="fleet")
    make(clock=clock, resolve_caller=recorded)
    assert submitter.wait(job.job_id, PATIENCE).status == "done"
    assert asked == [("anna", "fleet")]


def test_a_caller_that_is_no_more_fails_the_job(make, fetches):
    """resolve_caller returning None: failed with a clear error, targets left pending."""
    told = []
    runner = make(resolve_caller=lambda *_: None, hooks=Hooks(job=told.append))
    job = runner.submit(ANNA, ["u", "v"])
    ended = runner.wait(job.job_id, PATIENCE)
    assert (ended.status, ended.error) == ("failed", "unknown caller")
    assert {each.status for each in runner.status(job.job_id).targets} == {"pending"}
    runner.close()
    assert told == ["created", "failed"]
    assert fetches.calls == []


@pytest.mark.parametrize("error", [OSError("secret"), KeyError("secret"), RetryLater()])
def test_a_resolver_that_raises_is_tried_again_later(make, error, caplog):
    """A retry-later, whatever it raised, and its text is shown nowhere."""
    tries = []

    def moody(name, caller_class):
        tries.append(name)
        if len(tries) < 3:
            raise error
        return User(name)

    runner = make(resolve_caller=moody)
    job = runner.submit(ANNA, ["u"])
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    assert "secret" not in caplog.text


def test_a_resolver_that_keeps_raising_fails_the_target(make, clock):
    """After retry_for, with a text of the runner's own."""

    def broken(name, caller_class):
        raise OSError("secret")

    runner = make(resolve_caller=broken, clock=clock, retry_for=timedelta(seconds=3))
    job = runner.submit(ANNA, ["u"])
    until(lambda: clock.advance(1) or runner.progress(job.job_id).status == "failed")
    assert runner.status(job.job_id).targets[0].error == "the caller can't be resolved"


def test_a_stopped_runner_does_not_overwrite_the_new_owner(make, clock):
    """A sleeps past its hold, B finishes, A's outcome is refused (cases.md S16)."""
    slow, quick, told = Fetches(u=Result("by A")), Fetches(u=Result("by B")), []
    slow.hold("u")
    given = {"clock": clock, "resolve_caller": resolve, "hold_for": HOLD}
    first = make(fetch=slow, hooks=Hooks(target=lambda *args: told.append(args)), **given)
    job = first.submit(ANNA, ["u"])
    slow.wait_for("u")
    clock.advance(11)
    second = make(fetch=quick, **given)
    assert second.wait(job.job_id, PATIENCE).status == "done"
    slow.release()
    first.close()
    report = second.status(job.job_id)
    assert report.targets[0].result == Result("by B")
    assert (report.job.targets_done, report.job.nbytes) == (1, len('{"content":"by B"}'))
    assert told == []


def test_a_fetch_whose_hold_was_lost_is_told(make, fetches, store, clock, caplog):
    """The renewal says so: the context is cancelled, and the job's id is logged."""
    fetches.hold("u")
    runner = make(clock=clock, hold_for=HOLD, resolve_caller=resolve)
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    clock.advance(11)
    store.release_lost(now=clock(), hold_for=10, max_attempts=3, limit=10)
    assert runner._parts.holder.step() in {0, 1}
    until(lambda: fetches.contexts["u"].cancelled)
    assert f"job {job.job_id}: the hold" in caplog.text


def test_a_target_that_loses_every_runner_fails(make, clock):
    """The max_attempts-th loss stores it as failed: runner lost (design.md section 4)."""
    fetches, told = Fetches(), []
    fetches.hold("u")
    given = {
        "clock": clock,
        "resolve_caller": resolve,
        "hold_for": HOLD,
        "max_attempts": 2,
        "fetch": fetches,
    }
    first = make(**given)
    job = first.submit(ANNA, ["u"])
    fetches.wait_for("u")
    clock.advance(11)
    second = make(**given)
    fetches.wait_for("u", times=2)
    clock.advance(11)
    hooks = Hooks(target=lambda error, *_: told.append(str(error)), job=told.append)
    last = make(hooks=hooks, **given)
    assert second.progress(job.job_id).status == "failed"
    assert second.status(job.job_id).targets[0].error == "runner lost"
    last.close()
    assert told == ["runner lost", "failed"]
    fetches.release()


def test_shared_runners_go_by_the_clock_of_the_store(make):
    """One host's wrong clock can't take another's hold; an explicit clock= wins (case S6)."""
    store = MemoryStore(clock=lambda: 5_000_000.0)
    job = make(on=store, start=False, resolve_caller=resolve).submit(ANNA, ["u"])
    assert store.get_job(job.job_id).created_at == 5_000_000
    given = make(on=store, start=False, resolve_caller=resolve, clock=lambda: 7.0)
    assert store.get_job(given.submit(BERT, ["u"]).job_id).created_at == 7


def test_a_store_whose_clock_can_not_be_read_does_not_stop_a_runner(make, caplog):
    """Until the first sample succeeds the runner goes by its own host's clock."""

    class Store(MemoryStore):
        def now(self):
            raise StoreUnavailable("secret")

    runner = make(on=Store(), resolve_caller=resolve)
    job = runner.submit(ANNA, ["u"])
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    assert "store error (StoreUnavailable): its clock can't be read" in caplog.text
