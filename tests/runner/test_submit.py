"""Submitting: spec/seed-001, rule 1."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from batchmill.errors import (
    Busy,
    CallerBusy,
    InvalidInput,
    NoTargets,
    RunnerClosed,
    StoreBusy,
    TooManyTargets,
)
from batchmill.records import Admission
from batchmill.runner import Hooks, Runner, RunnerConfig, Target
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, CLEO, PATIENCE, User


def test_a_submit_stores_the_job_queued_before_it_returns(make, store, clock):
    """A random id, both times now, targets pending (spec/seed-001, rule 1)."""
    runner = make(start=False, clock=clock)
    job_id, reused = runner.submit(ANNA, ["u", Target("v", {"b": 1, "a": "é"})])
    job, targets = store.get_job(job_id), store.get_targets(job_id)
    assert not reused
    assert (job.status, job.caller, job.caller_class) == ("queued", "anna", "restricted")
    assert (job.created_at, job.lease, job.targets_total) == (1_000_000, 1_000_000, 2)
    assert [(each.url, each.options, each.status) for each in targets] == [
        ("u", "{}", "pending"),
        ("v", '{"a":"é","b":1}', "pending"),
    ]


def test_no_targets_is_said_before_anything_else(make):
    """An empty list is NoTargets, "no targets" (spec/seed-001, rule 1)."""
    with pytest.raises(NoTargets, match="^no targets$"):
        make(start=False).submit(User("a\x00b"), [])


def test_the_same_targets_of_the_same_caller_are_one_job(make):
    """A live job answers its key: reused, no new job (spec/seed-001, rule 1)."""
    runner = make(start=False)
    first = runner.submit(ANNA, [Target("u", {"a": 1, "b": 2})])
    assert runner.submit(ANNA, [Target("u", {"b": 2, "a": 1})]) == (first.job_id, True)
    assert not runner.submit(ANNA, ["u"]).reused


def test_the_same_targets_of_two_callers_are_two_jobs(make):
    """A key never answers another caller (cases.md 9b)."""
    runner = make(start=False)
    one, two = runner.submit(ANNA, ["u"]), runner.submit(BERT, ["u"])
    assert one.job_id != two.job_id
    assert not two.reused


def test_a_replay_succeeds_when_every_cap_is_full(make):
    """Idempotency comes before the caps (spec/seed-001, rule 1; cases.md 9b)."""
    runner = make(start=False, jobs_per_caller=1, jobs_total=1, targets_per_job=1)
    first = runner.submit(ANNA, ["u"])
    assert runner.submit(ANNA, ["u"]) == (first.job_id, True)


def test_the_caps_are_checked_in_their_order(make):
    """TooManyTargets, then CallerBusy, then Busy (spec/seed-001, rule 1)."""
    runner = make(start=False, jobs_per_caller=1, jobs_total=2, targets_per_job=2)
    runner.submit(ANNA, ["u"])
    with pytest.raises(TooManyTargets, match="^too many targets$"):
        runner.submit(ANNA, ["1", "2", "3"])
    with pytest.raises(CallerBusy, match="^busy$"):
        runner.submit(ANNA, ["v"])
    runner.submit(BERT, ["u"])
    with pytest.raises(Busy, match="^jobs busy$"):
        runner.submit(CLEO, ["u"])


def test_a_full_store_is_swept_once_before_a_submit_is_rejected(make, clock, store):
    """A job whose lease has run out gives its room (design.md section 5, Sweeping)."""
    runner = make(start=False, clock=clock, jobs_per_caller=1, ttl=timedelta(hours=1))
    old = runner.submit(ANNA, ["u"])
    clock.advance(3600)
    new = runner.submit(ANNA, ["v"])
    assert store.get_job(old.job_id) is None
    assert store.get_job(new.job_id) is not None


def test_a_created_submit_sweeps(make, clock, store):
    """spec/seed-001, rule 1: SweepBatch after each new job."""
    runner = make(start=False, clock=clock, ttl=timedelta(hours=1))
    old = runner.submit(ANNA, ["u"])
    clock.advance(3600)
    runner.submit(BERT, ["v"])
    assert store.get_job(old.job_id) is None


def test_a_sweep_that_fails_does_not_undo_a_submit(clock):
    """The job is stored: the submit answers with it."""

    class Store(MemoryStore):
        def sweep(self, **_):
            raise StoreBusy("locked")

    runner = Runner(Store(), print, RunnerConfig(jobs_per_caller=1), clock=clock)
    assert runner.progress(runner.submit(ANNA, ["u"]).job_id) is not None
    with pytest.raises(CallerBusy):
        runner.submit(ANNA, ["v"])


@pytest.mark.parametrize(
    "targets",
    ["http://one", Target("u"), [3], [None], ["a\x00b"], ["ok", "\ud83d"]],
    ids=["text", "target", "number", "none", "nul", "surrogate"],
)
def test_targets_are_a_list_of_targets_or_urls(make, targets, store):
    """Anything else is InvalidInput, and nothing is stored (cases.md 22)."""
    with pytest.raises(InvalidInput, match="targets"):
        make(start=False).submit(ANNA, targets)
    assert store.count_live_jobs() == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, {1}, b"x", "\ud83d", 10**5000], ids="abcdef")
def test_options_that_are_not_json_are_refused(make, store, value):
    """A submit says which target's options, and stores nothing (cases.md 21 and 22)."""
    with pytest.raises(InvalidInput, match=r"targets\[1\]\.options: not JSON"):
        make(start=False).submit(ANNA, ["u", Target("v", {"x": value})])
    assert store.count_live_jobs() == 0


@pytest.mark.parametrize("caller", [None, "anna", User(3), User("a\x00b"), User("x" * 256)])
def test_a_caller_has_a_name_that_can_be_stored(make, caller):
    """A caller without one, or with a NUL in it, is InvalidInput."""
    with pytest.raises(InvalidInput, match="caller"):
        make(start=False).submit(caller, ["u"])


def test_a_rejected_or_reused_submit_keeps_no_caller(make):
    """Callers are kept for the jobs of this runner only, up to their end."""
    runner = make(start=False, jobs_per_caller=1)
    job = runner.submit(ANNA, ["u"])
    runner.submit(ANNA, ["u"])
    with pytest.raises(CallerBusy):
        runner.submit(ANNA, ["v"])
    assert len(runner._parts.kept) == 1
    runner.start()
    runner.wait(job.job_id, PATIENCE)
    runner.close()
    assert len(runner._parts.kept) == 0


def test_the_callers_of_swept_jobs_are_forgotten(make, clock, store):
    """Housekeeping drops what was kept for a job that is gone."""
    runner = make(start=False, clock=clock, ttl=timedelta(hours=1))
    runner.submit(ANNA, ["u"])
    store.sweep(now=clock() + 3600, ttl=timedelta(hours=1))
    runner._parts.housekeeper.step()
    assert len(runner._parts.kept) == 0


def test_a_closed_or_draining_runner_takes_no_jobs(make):
    """Submits raise RunnerClosed from then on."""
    runner = make()
    runner.drain(PATIENCE)
    with pytest.raises(RunnerClosed):
        runner.submit(ANNA, ["u"])
    closed = make()
    closed.close()
    with pytest.raises(RunnerClosed):
        closed.submit(ANNA, ["u"])


def test_a_submit_wakes_an_idle_worker_at_once(make):
    """Nobody waits for the next poll for a job of this process."""
    runner = make(poll_interval=timedelta(hours=1))
    job = runner.submit(ANNA, ["u"])
    assert runner.wait(job.job_id, PATIENCE).status == "done"


class JoiningStore(MemoryStore):
    """A store whose ``within`` is a list: its jobs are stored when the test commits them."""

    def submit_job(self, job, targets, *, within=None, **given):
        if within is None:
            return super().submit_job(job, targets, **given)
        within.append(lambda: MemoryStore.submit_job(self, job, targets, **given))
        return Admission(job.id, reused=False, rejected=None)

    def sweep(self, **given):
        assert not self.inside, "a submit inside a transaction opened another one"
        return super().sweep(**given)

    inside = False


def test_a_submit_within_a_transaction_runs_after_its_commit(make):
    """The caller is kept meanwhile, nothing else is asked of the store, and polling finds it."""
    store, told = JoiningStore(), []
    runner = make(on=store, hooks=Hooks(job=told.append))
    transaction = []
    store.inside = True
    job = runner.submit(ANNA, ["u"], within=transaction)
    store.inside = False
    runner._parts.housekeeper.step()
    assert told == []
    transaction[0]()
    runner.wait(job.job_id, PATIENCE)
    runner.close()
    assert told == ["created", "done"]


def test_a_transaction_that_rolled_back_is_forgotten_after_the_ttl(make, clock):
    """A job that never shows up keeps its caller for a ttl, and tells no hook."""
    runner = make(on=JoiningStore(), start=False, clock=clock, ttl=timedelta(hours=1))
    runner.submit(ANNA, ["u"], within=[])
    clock.advance(3600)
    runner._parts.housekeeper.step()
    assert len(runner._parts.kept) == 1
    clock.advance(1)
    runner._parts.housekeeper.step()
    assert len(runner._parts.kept) == 0
