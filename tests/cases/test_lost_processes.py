"""Cases from the field whose runner is a process that is killed, or stopped for a while."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from datetime import timedelta

import pytest

from batchmill.runner import Result, Runner, RunnerConfig
from tests.runner.helpers import PATIENCE, User, until
from tests.support.invariants import broken
from tests.support.script import hears, script, tell

HOLD = timedelta(seconds=60)

TWO_JOBS_RUNNING = """
    runner = Runner(
        store, lambda context, caller, target: quick(context, caller, target)
        if target.url == "quick" else block(context, caller, target),
        RunnerConfig(workers=2, worker_limit=2, jobs_per_caller=2, jobs_total=2),
        resolve_caller=resolve if listen() == "shared" else None,
    ).start()
    jobs = [runner.submit(User("u"), ["quick", f"slow-{n}", "last"]).job_id for n in range(2)]
    while [runner.progress(job).targets_done for job in jobs] != [1, 1]:
        time.sleep(0.01)
    say(*jobs)
    time.sleep(60)
"""


@contextmanager
def runner_on(store, fetch=None, **given):
    """A runner in this process, closed at the end."""
    config = {"workers": 2, "worker_limit": 2, "poll_interval": timedelta(milliseconds=20)}
    names = set(RunnerConfig.__dataclass_fields__) & set(given)
    config |= {name: given.pop(name) for name in names}
    fetch = fetch or (lambda context, caller, target: Result(target.url))
    with Runner(store, fetch, RunnerConfig(**config), **given) as runner:
        yield runner


def killed_with_two_jobs_running(database, mode: str) -> list[str]:
    """kill -9 a runner that has stored one target of each of its jobs, and has the next running."""
    with script(database.url, TWO_JOBS_RUNNING) as process:
        tell(process, mode)
        jobs = process.stdout.readline().split()
        process.kill()
    assert len(jobs) == 2
    assert broken(database) == []
    return jobs


def statuses(runner, jobs) -> set[tuple[str, str]]:
    """Status and error of each job."""
    return {(job.status, job.error) for job in map(runner.progress, jobs)}


def third_runs(runner) -> None:
    """There is room for another job, and it is done."""
    third = runner.submit(User("v"), ["third"])
    assert runner.wait(third.job_id, PATIENCE).status == "done"


def test_case_3_a_kill_and_the_call_at_start(database, store):
    """Where one process owns the file, mark_in_flight_failed ends the two, and the third runs."""
    jobs = killed_with_two_jobs_running(database, "local")
    assert store.mark_in_flight_failed("restarted", now=store.now()) == 2
    with runner_on(store, jobs_per_caller=2, jobs_total=2) as runner:
        assert statuses(runner, jobs) == {("failed", "restarted")}
        third_runs(runner)
    assert broken(database) == []


def test_case_3_a_kill_and_the_next_start(database, store):
    """Once hold_for has passed, the next start ends the local two, and the third runs."""
    jobs = killed_with_two_jobs_running(database, "local")
    clock = {"clock": lambda: time.time() + 61}
    with runner_on(store, jobs_per_caller=2, jobs_total=2, **clock) as runner:
        assert statuses(runner, jobs) == {("failed", "runner lost")}
        assert [runner.progress(job).targets_done for job in jobs] == [1, 1]
        third_runs(runner)
    assert broken(database) == []


def test_case_3_a_kill_and_a_shared_runner(database, store):
    """In shared mode the two are resumed where they stood, and the third runs."""
    jobs = killed_with_two_jobs_running(database, "shared")
    clock = {"clock": lambda: time.time() + 61, "resolve_caller": lambda name, _: User(name)}
    with runner_on(store, jobs_per_caller=2, jobs_total=2, **clock) as runner:
        for job in jobs:
            assert runner.wait(job, PATIENCE).status == "done"
        third_runs(runner)
        attempts = database.query("SELECT attempt FROM batch_target WHERE idx < 3 ORDER BY idx")
    assert attempts == [(1,), (1,), (1,), (2,), (2,), (1,), (1,)]
    assert broken(database) == []


SWEEPING = """
    ttl, every = map(float, listen().split())
    say("ready")
    ended = threading.Event()
    threading.Thread(target=lambda: (listen(), ended.set())).start()
    swept = 0
    while not ended.wait(every):
        swept += store.sweep(now=time.time(), ttl=timedelta(seconds=ttl))
    say(swept)
"""


@pytest.mark.parametrize(
    ("ttl", "blocks", "every"),
    [(2, 3.2, 0.05), pytest.param(2, 6, 0.5, marks=pytest.mark.soak)],
    ids=["short", "full"],
)
def test_case_11_work_that_outlives_its_lease(database, store, ttl, blocks, every):
    """ttl 2 s, a fetch of 6 s, a second process that sweeps every 0.5 s: stored, fetched once."""
    calls = []

    def fetch(context, caller, target):
        calls.append(target.url)
        context.wait(blocks)
        return Result("at last")

    lasts = timedelta(seconds=ttl)
    with script(database.url, SWEEPING) as sweeper:
        tell(sweeper, f"{ttl} {every}")
        hears(sweeper, "ready")
        with runner_on(store, fetch, ttl=lasts, hold_for=HOLD) as runner:
            job = runner.submit(User("u"), ["u"]).job_id
            assert runner.wait(job, PATIENCE).status == "done"
            assert runner.status(job).targets[0].result == Result("at last")
            tell(sweeper)
            hears(sweeper, "0")
    assert calls == ["u"]
    assert broken(database) == []


STOPPED = """
    told, returns = [], threading.Event()
    def fetch(context, caller, target):
        say("fetching")
        listen()
        returns.set()
        return Result("by A")
    config = RunnerConfig(hold_for=timedelta(seconds=1), poll_interval=timedelta(milliseconds=20))
    hooks = Hooks(target=lambda error, *_: told.append(error))
    runner = Runner(store, fetch, config, hooks=hooks, resolve_caller=resolve).start()
    job = runner.submit(User("u"), ["u"]).job_id
    returns.wait(60)
    runner.close()
    say(len(told))
"""


def test_case_s16_a_zombie_does_not_overwrite_the_new_owner(database, store):
    """A is stopped past its hold, B finishes its target, A wakes and finishes too: refused."""
    with script(database.url, STOPPED) as first:
        hears(first, "fetching")
        first.send_signal(signal.SIGSTOP)
        resolve = {"resolve_caller": lambda name, _: User(name)}
        with runner_on(
            store,
            lambda *_: Result("by B"),
            hold_for=timedelta(seconds=1),
            **resolve,
        ) as second:
            (job,) = store.list_jobs()
            until(lambda: second.reconcile() and second.progress(job.id).status == "done")
            first.send_signal(signal.SIGCONT)
            tell(first, "return")
            hears(first, "0")
            assert first.wait(PATIENCE) == 0
            report = second.status(job.id)
    assert report.targets[0].result == Result("by B")
    assert (report.job.targets_done, report.job.nbytes) == (1, len('{"content":"by B"}'))
    assert broken(database) == []
