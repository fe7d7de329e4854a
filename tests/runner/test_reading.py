"""Reading: status, progress, results, watch, wait, touch."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from batchmill.errors import InvalidInput, JobNotFound, StoreBusy
from batchmill.runner import Result, Runner, reading
from batchmill.testing import MemoryStore
from tests.runner.helpers import ANNA, BERT, PATIENCE, until


def test_status_writes_nothing_and_touch_sets_the_lease(make, store, clock):
    """status is a pure read; touch bumps the lease to now (spec/seed-001, rule 6)."""
    runner = make(start=False, clock=clock)
    job = runner.submit(ANNA, ["u"])
    clock.advance(50)
    before = store.get_job(job.job_id)
    runner.status(job.job_id)
    runner.progress(job.job_id)
    list(runner.results(job.job_id))
    assert store.get_job(job.job_id) == before
    runner.touch(job.job_id)
    assert store.get_job(job.job_id).lease == 1_000_050


def test_status_maps_the_rows_in_order(make, fetches):
    """Targets by index, results decoded, NULL texts as "" (spec/seed-001, rule 6)."""
    runner = make()
    job = runner.submit(ANNA, ["a", "b", "c"])
    runner.wait(job.job_id, PATIENCE)
    report = runner.status(job.job_id)
    assert [(each.idx, each.url) for each in report.targets] == [(0, "a"), (1, "b"), (2, "c")]
    assert report.targets[0].result == Result("content of a")
    page = runner.status(job.job_id, start=1, limit=1, with_results=False)
    assert [(each.idx, each.result, each.error) for each in page.targets] == [(1, None, "")]


def test_another_callers_job_is_as_unknown_as_one_that_never_was(make):
    """caller= takes a Caller or a name, in every reading method and in cancel."""
    runner = make(start=False)
    job_id, _ = runner.submit(ANNA, ["u"])
    for other in (BERT, "bert"):
        assert runner.status(job_id, caller=other) is None
        assert runner.progress(job_id, caller=other) is None
        assert not runner.cancel(job_id, caller=other)
        for read in (runner.results, runner.watch, runner.touch, runner.wait):
            with pytest.raises(JobNotFound):
                read(job_id, caller=other)
    for owner in (ANNA, "anna"):
        assert runner.progress(job_id, caller=owner).id == job_id
    assert runner.cancel(job_id, caller="anna")
    with pytest.raises(InvalidInput, match="caller"):
        runner.progress(job_id, caller=3)


def test_an_unknown_job_is_none_or_not_found(make):
    """status and progress answer None; the others raise JobNotFound, at the call."""
    runner = make(start=False)
    assert runner.status("unknown") is None
    assert runner.progress("unknown") is None
    for read in (runner.results, runner.watch, runner.touch, runner.wait):
        with pytest.raises(JobNotFound):
            read("unknown")


def test_results_come_in_order_however_they_are_paged(make, monkeypatch):
    """Pages are bounded by rows and by bytes, and hold every target once."""
    runner = make(fetch=lambda context, *_: Result("x" * 10 * context.idx), targets_per_job=50)
    job = runner.submit(ANNA, [str(number) for number in range(20)])
    runner.wait(job.job_id, PATIENCE)
    monkeypatch.setattr(reading, "PAGE_ROWS", 3)
    monkeypatch.setattr(reading, "PAGE_BYTES", 300)
    reports = list(runner.results(job.job_id))
    assert [each.idx for each in reports] == list(range(20))
    assert [len(each.result.content) for each in reports] == [10 * idx for idx in range(20)]


def test_results_of_a_job_that_goes_meanwhile_are_not_cut_short(make, store, clock, monkeypatch):
    """JobNotFound instead of an end that looks like one."""
    monkeypatch.setattr(reading, "PAGE_ROWS", 1)
    runner = make(start=False, clock=clock)
    results = runner.results(runner.submit(ANNA, ["a", "b"]).job_id)
    next(results)
    store.sweep(now=clock(), ttl=timedelta(0))
    with pytest.raises(JobNotFound):
        next(results)


def test_progress_reads_one_row_and_no_result():
    """A fixed number of store calls, however many targets (cases.md S8)."""

    class Counting(MemoryStore):
        calls: list[str] = []  # noqa: RUF012 - one store, one list

        def get_job(self, *args, **named):
            self.calls.append("get_job")
            return super().get_job(*args, **named)

        def get_targets(self, *args, **named):
            self.calls.append("get_targets")
            return super().get_targets(*args, **named)

    store = Counting()
    runner = Runner(store, print)
    job = runner.submit(ANNA, ["u"])
    store.calls.clear()
    runner.progress(job.job_id)
    assert store.calls == ["get_job"]


def test_wait_ends_with_the_job_or_with_the_time(make, fetches):
    """The Job once it ended; TimeoutError before."""
    fetches.hold("u")
    runner = make()
    job = runner.submit(ANNA, ["u"])
    with pytest.raises(TimeoutError):
        runner.wait(job.job_id, 0)
    with pytest.raises(TimeoutError):
        runner.wait(job.job_id, timeout=0.01)
    fetches.release()
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    assert runner.wait(job.job_id, 0).targets_done == 1


def test_wait_does_not_depend_on_polling_in_its_own_process(make):
    """Who settles the job wakes who waits for it."""
    runner = make(poll_interval=timedelta(hours=1))
    jobs = [runner.submit(ANNA, [str(number)]) for number in range(5)]
    assert [runner.wait(job.job_id, PATIENCE).status for job in jobs] == ["done"] * 5


def test_wait_sees_what_others_do(make, store, clock):
    """A job that another process ends, or that is swept, ends the wait by polling."""
    runner = make(start=False, clock=clock)
    ended, gone = runner.submit(ANNA, ["u"]), runner.submit(BERT, ["u"])
    waiting = threading.Thread(target=runner.wait, args=(ended.job_id, PATIENCE))
    waiting.start()
    store.cancel_job(ended.job_id, now=clock())
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    store.sweep(now=clock(), ttl=timedelta(0))
    with pytest.raises(JobNotFound):
        runner.wait(gone.job_id, PATIENCE)


def test_a_busy_store_does_not_end_a_wait():
    """Who waits anyway asks again (cases.md S17)."""

    class Busy(MemoryStore):
        busy = 3

        def get_job(self, *args, **named):
            if self.busy:
                self.busy -= 1
                raise StoreBusy("locked")
            return super().get_job(*args, **named)

    from batchmill.runner import RunnerConfig

    store = Busy()
    config = RunnerConfig(poll_interval=timedelta(milliseconds=1))
    runner = Runner(store, print, config)
    job = runner.submit(ANNA, ["u"])
    store.cancel_job(job.job_id, now=0)
    store.busy = 3
    assert runner.wait(job.job_id, PATIENCE).status == "cancelled"


def test_watch_yields_each_change_and_ends_with_the_job(make, fetches):
    """The first is the job as it is, the last the terminal one; none comes twice."""
    fetches.hold("1", "2", "3")
    runner = make(poll_interval=timedelta(hours=1))
    job = runner.submit(ANNA, ["1", "2", "3"])
    fetches.wait_for("1")
    seen = []
    for state in runner.watch(job.job_id):
        seen.append((state.status, state.targets_done))
        if state.targets_done < 3:
            fetches.release(str(state.targets_done + 1))
    assert seen == [("running", 0), ("running", 1), ("running", 2), ("done", 3)]
    assert not runner._watchers


def test_watch_sees_what_others_do(make, store, clock):
    """Another process's cancel ends it, by polling; a new lease is no change."""
    runner = make(start=False, clock=clock)
    job = runner.submit(ANNA, ["u"])
    watching = runner.watch(job.job_id)
    assert next(watching).status == "queued"
    runner.touch(job.job_id)
    store.cancel_job(job.job_id, now=clock())
    assert [state.status for state in watching] == ["cancelled"]
    until(lambda: not runner._watchers)
