"""Who goes next: serial in a job, fair between jobs."""

from __future__ import annotations

import threading
from collections import Counter

from batchmill.runner import Result
from tests.runner.helpers import ANNA, BERT, CLEO, PATIENCE


def test_two_jobs_alternate_with_one_worker(make, fetches):
    """Two live jobs take turns, a1 b1 a2 b2 a3 b3, also when b comes while a1 is in flight.

    spec/seed-001, rule 2 (TestRoundRobin).
    """
    fetches.hold("a1")
    runner = make()
    a = runner.submit(ANNA, ["a1", "a2", "a3"])
    fetches.wait_for("a1")
    b = runner.submit(BERT, ["b1", "b2", "b3"])
    fetches.release()
    runner.wait(a.job_id, PATIENCE)
    runner.wait(b.job_id, PATIENCE)
    assert fetches.calls == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_a_job_that_no_worker_has_reached_stays_queued(make, fetches):
    """A job is running from its first target on, and queued before (spec/seed-001, rule 2)."""
    fetches.hold("a1")
    runner = make()
    a = runner.submit(ANNA, ["a1"])
    fetches.wait_for("a1")
    b = runner.submit(BERT, ["b1"])
    assert runner.progress(a.job_id).status == "running"
    assert runner.progress(b.job_id).status == "queued"


def test_a_small_job_does_not_wait_for_a_large_one(make, fetches):
    """With one worker, the only target of B starts within two targets (cases.md S2)."""
    fetches.hold("a0")
    runner = make(targets_per_job=1000)
    runner.submit(ANNA, [f"a{number}" for number in range(1000)])
    fetches.wait_for("a0")
    b = runner.submit(BERT, ["b"])
    fetches.release()
    runner.wait(b.job_id, PATIENCE)
    assert fetches.calls.index("b") <= 2


def test_many_workers_never_have_two_targets_of_one_job_in_flight(make):
    """A job is serial, whatever the number of workers (spec/seed-001, rule 2)."""
    lock, now, worst = threading.Lock(), Counter(), Counter()
    order: dict[str, list[str]] = {}

    def fetch(context, caller, target):
        with lock:
            now[context.job_id] += 1
            worst[context.job_id] = max(worst[context.job_id], now[context.job_id])
            order.setdefault(context.job_id, []).append(target.url)
        context.wait(0.0005)
        with lock:
            now[context.job_id] -= 1
        return Result("x")

    runner = make(fetch=fetch, workers=16)
    jobs = [
        runner.submit(caller, [f"{caller.name}{job}/{idx}" for idx in range(8)])
        for job in range(6)
        for caller in (ANNA, BERT, CLEO)
    ]
    for job in jobs:
        assert runner.wait(job.job_id, PATIENCE).status == "done"
    assert set(worst.values()) == {1}
    assert all(urls == sorted(urls) and len(urls) == 8 for urls in order.values())


def test_all_workers_fetch_at_once(make):
    """With as many ready jobs as workers, every worker is at work."""
    together = threading.Barrier(6)

    def fetch(context, caller, target):
        together.wait(PATIENCE)
        return Result("x")

    runner = make(fetch=fetch, workers=6)
    jobs = [runner.submit(ANNA, [f"{number}"]) for number in range(6)]
    assert {runner.wait(job.job_id, PATIENCE).status for job in jobs} == {"done"}


def test_runners_of_two_queues_share_a_database(make, fetches):
    """A runner claims from its own queue only, and the key of a submit tells queues apart."""
    other = make(queue="other", fetch=lambda *_: Result("by the other"))
    runner = make()
    mine, theirs = runner.submit(ANNA, ["u"]), other.submit(ANNA, ["u"])
    assert mine.job_id != theirs.job_id
    runner.wait(mine.job_id, PATIENCE)
    other.wait(theirs.job_id, PATIENCE)
    assert fetches.calls == ["u"]
    assert next(iter(runner.results(theirs.job_id))).result == Result("by the other")


def test_a_job_submitted_before_start_runs_after_it(make, fetches):
    """Nothing starts in the constructor; submitting before start is fine."""
    runner = make(start=False)
    job = runner.submit(ANNA, ["u"])
    assert runner.progress(job.job_id).status == "queued"
    assert threading.active_count() == 1 or fetches.calls == []
    runner.start()
    assert runner.wait(job.job_id, PATIENCE).status == "done"


def test_a_worker_gets_the_target_as_it_was_submitted(make, fetches):
    """The fetch gets the URL and the options as the store holds them, and its own place."""
    from batchmill.runner import Options, Target

    runner = make()
    given = [Target("u0", {"b": [1], "a": None}), Target("u1", options=Options(mode="x"))]
    job = runner.submit(ANNA, given)
    runner.wait(job.job_id, PATIENCE)
    assert fetches.targets == [Target("u0", {"a": None, "b": [1]}), Target("u1", {"mode": "x"})]
    context = fetches.contexts["u1"]
    assert (context.job_id, context.idx, context.attempt) == (job.job_id, 1, 1)
    assert fetches.callers == ["anna", "anna"]
