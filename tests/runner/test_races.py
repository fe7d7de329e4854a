"""Wakes, hand-overs and ends under as many thread switches as can be had."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from batchmill.errors import RetryLater, RunnerClosed
from batchmill.runner import Hooks, Result
from batchmill.testing import MemoryStore
from tests.runner.helpers import PATIENCE, User


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_no_wake_is_lost(make, workers):
    """Without polling, whatever is submitted from many threads is worked off."""
    runner = make(workers=workers, poll_interval=timedelta(hours=1), jobs_total=1000)
    jobs: list[str] = []

    def submit(number: int) -> None:
        for job in range(15):
            targets = [f"{job}/{idx}" for idx in range(job % 3 + 1)]
            jobs.append(runner.submit(User(f"u{number}"), targets).job_id)
            if job % 4 == 0:
                runner.wait(jobs[-1], PATIENCE)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * PATIENCE)
    assert {runner.wait(job, PATIENCE).status for job in jobs} == {"done"}
    assert len(jobs) == 60


def test_retries_do_not_need_a_worker_that_comes_by(make):
    """An idle worker wakes for the next retry, however the others come and go."""
    tries: Counter[str] = Counter()

    def fetch(context, caller, target):
        tries[target.url] += 1
        if tries[target.url] < 3:
            raise RetryLater(after=random.random() / 100)
        return Result("x")

    runner = make(
        workers=5,
        poll_interval=timedelta(hours=1),
        retry_wait=timedelta(milliseconds=1),
        fetch=fetch,
    )
    jobs = [
        runner.submit(User(f"u{job}"), [f"{job}/{idx}" for idx in range(3)]) for job in range(12)
    ]
    assert {runner.wait(job.job_id, PATIENCE).status for job in jobs} == {"done"}
    assert set(tries.values()) == {3}


@pytest.mark.parametrize("seed", range(5))
def test_a_close_in_the_middle_loses_and_repeats_nothing(make, seed):
    """What was told as stored is stored, the rest is pending, and nothing stays running."""
    store, told, fetched = MemoryStore(), [], []
    hooks = Hooks(target=lambda *_: told.append(1))

    def fetch(context, caller, target):
        fetched.append(target.url)
        return Result("x")

    runner = make(on=store, fetch=fetch, workers=6, hooks=hooks)
    jobs: list[str] = []

    def submit() -> None:
        try:
            for job in range(40):
                targets = [f"{job}/{idx}" for idx in range(5)]
                jobs.append(runner.submit(User("u"), targets).job_id)
        except RunnerClosed:
            pass

    submitting = threading.Thread(target=submit)
    submitting.start()
    threading.Event().wait(random.Random(seed).random() / 20)
    runner.close(timeout=[None, 5.0, 0.0][seed % 3])
    submitting.join(PATIENCE)
    reports = [runner.status(job) for job in jobs]
    stored = sum(report.job.targets_done for report in reports)
    statuses = Counter(each.status for report in reports for each in report.targets)
    assert statuses["running"] == 0
    assert statuses["done"] == stored == len(told)
    assert len(fetched) == len(set(fetched))
    assert not store._runners


def test_cancels_from_everywhere_end_each_job_once(make):
    """Every job gets exactly one terminal hook, whoever was first."""
    ends: list[str] = []
    hooks = Hooks(job=lambda outcome: ends.append(outcome) if outcome != "created" else None)
    runner = make(workers=4, hooks=hooks)
    jobs = [runner.submit(User("u"), [f"{job}/{idx}" for idx in range(4)]) for job in range(30)]
    won = []

    def cancel(number: int) -> None:
        won.extend(job.job_id for job in jobs[number::2] if runner.cancel(job.job_id))

    threads = [threading.Thread(target=cancel, args=(number,)) for number in (0, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    statuses = Counter(runner.wait(job.job_id, PATIENCE).status for job in jobs)
    runner.close()
    assert len(won) == len(set(won)) == statuses["cancelled"]
    assert Counter(ends) == statuses
