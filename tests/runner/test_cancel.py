"""Cancelling: spec/seed-001, rule 5."""

from __future__ import annotations

from datetime import timedelta

from batchmill.runner import Hooks, Result
from tests.runner.helpers import ANNA, PATIENCE, until


def test_the_target_in_flight_is_stored_and_no_other_starts(make, fetches):
    """Cancelled at once; later targets stay pending (spec/seed-001, rule 5)."""
    fetches.hold("u1")
    runner = make()
    job = runner.submit(ANNA, ["u1", "u2"])
    fetches.wait_for("u1")
    assert runner.cancel(job.job_id)
    assert runner.wait(job.job_id, 0).status == "cancelled"
    fetches.release()
    until(lambda: runner.progress(job.job_id).targets_done == 1)
    report = runner.status(job.job_id)
    assert [each.status for each in report.targets] == ["done", "pending"]
    assert report.job.status == "cancelled"
    assert fetches.calls == ["u1"]


def test_the_last_fetch_does_not_overwrite_cancelled(make, fetches):
    """Stays cancelled, and there is no second terminal hook (cases.md 8)."""
    told = []
    fetches.hold("u")
    runner = make(hooks=Hooks(job=told.append))
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    runner.cancel(job.job_id)
    fetches.release()
    until(lambda: runner.progress(job.job_id).targets_done == 1)
    runner.close()
    assert runner.progress(job.job_id).status == "cancelled"
    assert told == ["created", "cancelled"]


def test_a_job_that_has_ended_can_not_be_cancelled(make):
    """False for an unknown id and for a terminal job, which stays (cases.md 8)."""
    runner = make()
    job = runner.submit(ANNA, ["u"])
    runner.wait(job.job_id, PATIENCE)
    assert not runner.cancel(job.job_id)
    assert not runner.cancel("unknown")
    assert runner.progress(job.job_id).status == "done"


def test_a_queued_job_is_cancelled_before_it_starts(make, fetches):
    """Nothing of it is fetched."""
    runner = make(start=False)
    job = runner.submit(ANNA, ["u"])
    assert runner.cancel(job.job_id)
    assert not runner.cancel(job.job_id)
    runner.start()
    runner.drain(PATIENCE)
    assert fetches.calls == []


def test_a_fetch_sees_the_cancel_at_once(make, fetches):
    """context.wait ends early and says so; the runner never interrupts."""
    answers = []

    def patient(context):
        answers.append(context.wait(PATIENCE))
        return Result(context.cancelled)

    fetches.answers["u"] = patient
    runner = make()
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    runner.cancel(job.job_id)
    until(lambda: runner.progress(job.job_id).targets_done == 1)
    assert answers == [True]
    assert runner.status(job.job_id).targets[0].result == Result(content=True)


def test_a_cancel_by_another_process_reaches_the_fetch(make, fetches, store, clock):
    """The renewal of holds brings the news."""
    fetches.hold("u")
    runner = make(clock=clock)
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    store.cancel_job(job.job_id, now=clock())
    assert not fetches.contexts["u"].cancelled
    runner._parts.holder.step()
    assert fetches.contexts["u"].cancelled


def test_a_cancel_by_another_process_comes_with_the_next_exchange_too(make, fetches, store, clock):
    """A worker that has just finished learns of cancelled jobs in flight beside it."""
    fetches.hold("u", "v")
    runner = make(clock=clock, workers=2, hold_for=timedelta(hours=1))
    job = runner.submit(ANNA, ["u"])
    other = runner.submit(ANNA, ["v"])
    fetches.wait_for("u")
    fetches.wait_for("v")
    store.cancel_job(job.job_id, now=clock())
    fetches.release("v")
    runner.wait(other.job_id, PATIENCE)
    until(lambda: fetches.contexts["u"].cancelled)
