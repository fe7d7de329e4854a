"""Hooks: spec/seed-001, rules 3, 4 and 7."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from batchmill.errors import InternalError, RetryLater, TargetError
from batchmill.runner import Hooks, Result
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, PATIENCE, until


class Told:
    """Everything that the hooks were told, in order."""

    def __init__(self) -> None:
        self.events: list[tuple] = []

    def hooks(self, *names: str) -> Hooks:
        """Hooks of these names."""
        return Hooks(**{name: self._recorder(name) for name in names})

    def _recorder(self, name: str):
        return lambda *args: self.events.append((name, *args))

    def of(self, name: str) -> list:
        return [args[0] if len(args) == 1 else args for kind, *args in self.events if kind == name]


@pytest.fixture
def told() -> Told:
    return Told()


def test_hooks_come_in_outcome_order(make, told, clock):
    """target, job, job_seconds, depth, after each outcome (design.md section 5)."""
    runner = make(hooks=told.hooks("job", "target", "job_seconds", "depth"), clock=clock)
    job = runner.submit(ANNA, ["a", "b"])
    runner.wait(job.job_id, PATIENCE)
    runner.close()
    kinds = [event[0] for event in told.events]
    assert kinds == ["job", "depth", "target", "target", "job", "job_seconds", "depth"]


def test_every_stored_target_is_told_once(make, told, fetches):
    """None on success, the error otherwise, InternalError for a panic; never for a retry."""
    broken, tries = TargetError("no"), []

    def busy_once(context):
        tries.append(context.attempt)
        if len(tries) == 1:
            raise RetryLater
        return Result("é")

    fetches.answers.update(busy=busy_once, broken=broken, panic=KeyError("secret"))
    runner = make(hooks=told.hooks("target"))
    job = runner.submit(ANNA, ["busy", "broken", "panic"])
    runner.wait(job.job_id, PATIENCE)
    runner.close()
    first, second, third = told.of("target")
    assert first[0] is None
    assert first[1] >= 0
    assert first[2] == len('{"content":"é"}'.encode())
    assert second[0] is broken
    assert (type(third[0]), str(third[0]), third[2]) == (InternalError, "internal error", 0)


def test_a_job_is_told_created_then_its_end_exactly_once(make, told, clock):
    """created, reused, and the terminal status; seconds from submit (spec/seed-001, rule 4)."""
    runner = make(start=False, hooks=told.hooks("job", "job_seconds"), clock=clock)
    job = runner.submit(ANNA, ["u"])
    assert runner.submit(ANNA, ["u"]).reused
    clock.advance(7)
    runner.start()
    runner.wait(job.job_id, PATIENCE)
    runner.close()
    assert told.of("job") == ["created", "reused", "done"]
    assert told.of("job_seconds") == [7.0]


def test_a_cancel_is_told_once_with_its_seconds(make, told, clock):
    """spec/seed-001, rule 5: Hooks.Job("cancelled") once; job_seconds too (design.md)."""
    runner = make(start=False, hooks=told.hooks("job", "job_seconds", "depth"), clock=clock)
    job = runner.submit(ANNA, ["u"])
    clock.advance(3)
    runner.cancel(job.job_id)
    runner.cancel(job.job_id)
    assert told.events[2:] == [("job", "cancelled"), ("job_seconds", 3.0), ("depth", 0)]


def test_depth_is_the_number_of_live_jobs_after_every_change(make, told, fetches):
    """Submit, settle and cancel (spec/seed-001, rule 7)."""
    fetches.hold("u")
    runner = make(hooks=told.hooks("depth"))
    one, two = runner.submit(ANNA, ["u"]), runner.submit(BERT, ["u", "v"])
    runner.cancel(two.job_id)
    fetches.release()
    runner.wait(one.job_id, PATIENCE)
    runner.close()
    assert told.of("depth") == [1, 2, 1, 0]


def test_inflight_is_the_number_of_targets_being_fetched(make, told, fetches):
    """After every change, and never more than there are workers (spec/seed-001, rule 7)."""
    fetches.hold("a", "b")
    runner = make(hooks=told.hooks("inflight"), workers=2)
    jobs = [runner.submit(ANNA, ["a"]), runner.submit(BERT, ["b"])]
    fetches.wait_for("a")
    fetches.wait_for("b")
    fetches.release()
    for job in jobs:
        runner.wait(job.job_id, PATIENCE)
    runner.close()
    assert told.of("inflight") == [1, 2, 1, 0]


def test_live_jobs_are_only_counted_for_a_hook(make):
    """Without a depth hook no query is made for it."""

    class Store(MemoryStore):
        def count_live_jobs(self, caller=None):
            raise AssertionError

    runner = make(on=Store())
    job = runner.submit(ANNA, ["u"])
    runner.wait(job.job_id, PATIENCE)


def test_a_hook_that_raises_is_logged_and_changes_nothing(make, fetches, caplog):
    """Its text isn't logged, and the job ends as it would (design.md section 5)."""

    def broken(*_):
        raise SystemExit("secret")

    hooks = Hooks(job=broken, target=broken, job_seconds=broken, depth=broken, inflight=broken)
    with caplog.at_level(logging.DEBUG):
        runner = make(hooks=hooks)
        job = runner.submit(ANNA, ["u", "v"])
        assert runner.wait(job.job_id, PATIENCE).status == "done"
        runner.close()
    messages = [record.getMessage() for record in caplog.records]
    assert any("the target hook raised: SystemExit < test_hooks.py" in each for each in messages)
    assert "secret" not in caplog.text


def test_a_hook_may_use_the_runner(make, fetches):
    """A hook that cancels or submits doesn't wait for itself."""
    runner, told = None, []

    def chain(outcome):
        told.append(outcome)
        if outcome == "done" and told.count("done") == 1:
            runner.submit(BERT, ["next"])

    runner = make(hooks=Hooks(job=chain))
    job = runner.submit(ANNA, ["u"])
    runner.wait(job.job_id, PATIENCE)
    fetches.wait_for("next")
    runner.drain(PATIENCE)
    runner.close()
    assert told == ["created", "done", "created", "done"]


def test_hooks_stay_in_order_with_many_workers(make, told):
    """One thread at a time calls them: a job's end comes after all its targets."""
    runner = make(hooks=told.hooks("job", "target"), workers=8)
    jobs = [runner.submit(ANNA, [f"{job}/{idx}" for idx in range(4)]) for job in range(10)]
    for job in jobs:
        runner.wait(job.job_id, PATIENCE)
    runner.close()
    assert len(told.of("target")) == 40
    targets = 0
    ends = 0
    for event in told.events:
        targets += event[0] == "target"
        ends += event == ("job", "done")
        assert 4 * ends <= targets
    assert ends == 10


def test_hooks_stay_in_order_although_a_leader_is_slow(make, told, fetches):
    """Who stored first is told of first, whichever worker comes to it first."""
    fetches.answers.update({url: TargetError(url) for url in ("a0", "a1", "b0", "b1", "c0")})
    fetches.hold("b0", "b1", "c0")
    runner = make(hooks=told.hooks("target", "job"), workers=2, start=False)
    jobs = [runner.submit(ANNA, urls).job_id for urls in (["a0", "a1"], ["b0", "b1"], ["c0"])]
    tell, calls = runner._parts.after.tell, []

    def second_is_slow():
        calls.append(1)
        if len(calls) == 2:  # a0 is stored, but not told of
            fetches.release("b0")
            until(lambda: runner.progress(jobs[0]).status == "failed")
        tell()

    runner._parts.after.tell = second_is_slow
    runner.start()
    runner.wait(jobs[0], PATIENCE)
    fetches.release()
    runner.drain(PATIENCE)
    runner.close()
    events = [str(event[1]) for event in told.events]
    assert events[3:7] == ["a0", "b0", "a1", "failed"]


def test_a_job_is_told_created_before_all_that_happens_to_it(make, told):
    """Also when a worker has ended it before its submit returns."""

    class Store(MemoryStore):
        def submit_job(self, job, targets, **named):
            admission = super().submit_job(job, targets, **named)
            until(lambda: self.get_job(job.id).status.terminal)
            return admission

    runner = make(on=Store(), hooks=told.hooks("job", "target"))
    runner.submit(ANNA, ["u"])
    runner.close()
    assert [event[0] for event in told.events] == ["job", "target", "job"]
    assert told.of("job") == ["created", "done"]


def test_what_a_lost_runner_left_is_told_by_who_released_it(make, told, fetches, store, clock):
    """Whoever's transaction settled a thing calls its hook (design.md section 5)."""
    fetches.hold("u")
    first = make(clock=clock, start=False, hold_for=timedelta(seconds=10))
    first.submit(ANNA, ["u"])
    clock.advance(11)
    second = make(
        clock=clock, hold_for=timedelta(seconds=10), hooks=told.hooks("job", "job_seconds", "depth")
    )
    second.close()
    assert told.events == [("job", "failed"), ("job_seconds", 11.0), ("depth", 0)]
