"""Runners that share a database: lost ones, slow ones, and ones that are told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from batchmill.runner import Result
from tests.hosts.processes import PATIENCE, TOP, Process
from tests.hosts.support import Gate, runner_on, submitted
from tests.runner.helpers import User, until
from tests.support.invariants import broken
from tests.support.tables import print_later

HOLD, POLL = 1.5, 0.1
LATE = 1.0
"""Seconds that a loaded machine may add."""


@pytest.fixture
def processes(database, tmp_path):
    """Starts runner processes on the database."""
    started: list[Process] = []

    def start(name: str, **given: object) -> Process:
        options = {"hold_for": HOLD, "poll": POLL, "loud": True, "fetch": 0.01} | given
        started.append(Process(tmp_path, name, database.url, **options))
        started[-1].hears("ready")
        return started[-1]

    yield start
    for process in started:
        process.end()


def test_a_lost_runners_target_is_taken_over_within_a_hold_and_a_poll(database, processes):
    """Killed in a fetch: another runner has its target as soon as the hold has lapsed."""
    store = database.store()
    (job,) = submitted(runner_on(store, print), 1, 2)
    first = processes("first", fetch=None)
    first.hears("fetch")
    second = processes("second")
    first.send(signal.SIGKILL)
    killed = time.monotonic()
    second.hears(f"fetch {job} 0 2")
    taken = time.monotonic() - killed
    print_later(
        f"take-over, {database.kind}",
        [f"{taken:.2f} s after a kill; hold_for is {HOLD} s, the poll {POLL} s"],
    )
    assert taken <= HOLD + POLL + LATE
    until(lambda: store.get_job(job).status == "done")
    assert broken(database, logged=True) == []


def test_the_last_allowed_loss_fails_the_target(database, processes):
    """max_attempts kills in the same target: it fails with "runner lost", the rest goes on."""
    store = database.store()
    (job,) = submitted(runner_on(store, print), 1, 2)
    for attempt in (1, 2):
        lost = processes(f"lost-{attempt}", fetch=None, max_attempts=2)
        lost.hears(f"fetch {job} 0 {attempt}")
        lost.send(signal.SIGKILL)
    processes("last", max_attempts=2)
    until(lambda: store.get_job(job).status == "partial")
    (first, second) = store.get_targets(job)
    assert (first.status, first.error, second.status) == ("failed", "runner lost", "done")
    assert broken(database, logged=True) == []


def test_sigterm_puts_back_at_once(database, processes):
    """What a runner that ends can't finish starts elsewhere at once, not when its hold lapses."""
    store = database.store()
    jobs = submitted(runner_on(store, print), 4, 2)
    first = processes("first", fetch=None, workers=2, hold_for=300, grace=0.2)
    first.hears("fetch", times=2)
    second = processes("second", hold_for=300)
    second.hears("fetch", times=4)  # of the jobs that nobody else holds
    first.send(signal.SIGTERM)
    told = time.monotonic()
    first.hears("ended")
    until(lambda: {store.get_job(job).status for job in jobs} == {"done"})
    took = time.monotonic() - told
    print_later(f"SIGTERM, {database.kind}", [f"all was done {took:.2f} s after it"])
    assert took < 5
    assert first.process.wait(PATIENCE) == 0
    assert database.query("SELECT sum(lost) FROM batch_target") == [(0,)]
    assert broken(database, logged=True) == []


FUNCTIONS = """
import time

def fetch(context, caller, target):
    print("fetch", flush=True)
    context.wait(60)
    time.sleep(60)

def resolve(name, caller_class):
    return type("Caller", (), {"name": name})()
"""


def test_the_command_ends_in_order_at_sigterm(database, tmp_path):
    """``batchmill worker`` puts back what it fetches, and exits with 0."""
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    store, gate = database.store(), Gate()
    (job,) = submitted(runner_on(store, print), 1, 2)
    words = ["--fetch", "functions:fetch", "--resolve-caller", "functions:resolve"]
    options = ["--hold-for", "5m", "--grace", "1s", "--db", database.url]
    worker = subprocess.Popen(
        [sys.executable, "-m", "batchmill.cli", "worker", *words, *options],
        cwd=TOP,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with worker:
        try:
            assert worker.stdout.readline() == "fetch\n", worker.stderr.read()
            worker.terminate()
            assert worker.wait(PATIENCE) == 0
        finally:
            worker.kill()
    assert database.query("SELECT holder FROM batch_turn") == [(None,)]
    with runner_on(store, gate) as runner:
        assert runner.wait(job, PATIENCE).status == "done"
    assert broken(database, logged=True) == []


def test_case_6_a_runner_that_starts_leaves_a_live_ones_jobs_alone(database):
    """B starts, and looks for lost work again and again: A's jobs, local or shared, end done."""
    gate = Gate(shut=True)
    local = runner_on(database.store(), gate, workers=1, resolve_caller=None)
    with local, runner_on(database.store(), gate, workers=1) as shared:
        jobs = submitted(local, 1, 2, "local") + submitted(shared, 1, 2, "shared")
        gate.wait_for(2)
        with runner_on(database.store(), gate, workers=1) as second:
            for _ in range(3):
                released = second.reconcile()
                assert not (released.put_back or released.failed or released.settled)
            gate.open()
            assert [second.wait(job, PATIENCE).status for job in jobs] == ["done", "done"]
    assert set(gate.fetched.values()) == {1}
    assert broken(database, logged=True) == []


@pytest.mark.parametrize("wrong", [-3600, 3600], ids=["behind", "ahead"])
def test_case_s6_a_host_whose_clock_is_wrong_takes_nothing(database, monkeypatch, wrong):
    """An hour ahead or behind: shared runners go by the database's clock, so holds stand."""
    gate = Gate(shut=True)
    with runner_on(database.store(), gate, workers=1) as first:
        (job,) = submitted(first, 1, 1)
        gate.wait_for(1)
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() + wrong)
        other = runner_on(database.store(), lambda *_: Result("stolen"), workers=1)
        with other as second:
            released = second.reconcile()
            assert not (released.put_back or released.settled)
            made = second.submit(User("v"), ["other"])
            ended = second.wait(made.job_id, PATIENCE)
            assert abs(ended.created_at - right()) < 60
        monkeypatch.undo()
        gate.open()
        assert first.wait(job, PATIENCE).status == "done"
        assert first.status(job).targets[0].result == Result("t-0-0")
    assert gate.fetched["t-0-0"] == 1
    assert broken(database, logged=True) == []
