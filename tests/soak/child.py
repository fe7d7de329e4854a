"""A process that does a bit of everything with a store, until its stdin ends; then it reports.

Three lines come out: ``ready``, what it has done, and what it has left behind after closing.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any

from batchmill.errors import JobNotFound, RetryLater, SubmitRejected, TargetError
from batchmill.records import BatchJob, BatchTarget
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine
from tests.runner.helpers import User
from tests.support.process import open_files

WORKERS = 4
TTL = timedelta(seconds=20)
GROWTH = 40_000
"""Bytes a second by which the budget of kept results rises, and the file with it."""
START_BYTES = 4_000_000


def fetch(context: Any, _caller: User, target: Any) -> Result:
    """Results of one to twenty kilobytes; some targets are busy first, some fail."""
    number = int(target.url.rsplit("/", 1)[1])
    if number % 5 == 1 and context.attempt == 1:
        raise RetryLater
    if number % 7 == 3:
        raise TargetError("not there", hint="nor anywhere else")
    return Result("x" * (1000 + number % 20 * 1000))


class Mix:
    """What one process does besides draining, a bit at a time; ``done`` counts it."""

    def __init__(self, store: BatchRepository, runner: Runner[User], seed: int) -> None:
        self.store, self.runner = store, runner
        self.done: Counter[str] = Counter()
        self.begun = time.monotonic()
        self._chance = random.Random(seed)
        self._mine: list[str] = []
        self._choices = [
            (self.submit, 8),
            (self.cancel, 1),
            (self.poll, 6),
            (self.page, 4),
            (self.sweep, 1),
            (self.evict, 1),
            (self.list, 1),
        ]

    def step(self) -> None:
        """Do one of the things."""
        actions, weights = zip(*self._choices, strict=True)
        (action,) = self._chance.choices(actions, weights)
        try:
            action()
            self.done[action.__name__] += 1
        except JobNotFound:
            self.done["gone"] += 1

    def submit(self) -> None:
        """A job of one to eight targets, unless the caps are full."""
        job = self._chance.getrandbits(48)
        urls = [f"{job}/{self._chance.randrange(40)}" for _ in range(self._chance.randint(1, 8))]
        try:
            self._mine.append(self.runner.submit(User("u"), urls).job_id)
            self._mine = self._mine[-200:]
        except SubmitRejected:
            self.done["rejected"] += 1

    def _any(self) -> str:
        if not self._mine:
            raise JobNotFound
        return self._chance.choice(self._mine)

    def cancel(self) -> None:
        """One of the newest jobs, which may have ended."""
        if self._mine:
            self.runner.cancel(self._mine[-1])

    def poll(self) -> None:
        """Progress and status of some job."""
        job = self._any()
        self.runner.progress(job)
        self.runner.status(job, with_results=False)

    def page(self) -> None:
        """All results of some job, which is then wanted a while longer."""
        job = self._any()
        for _ in self.runner.results(job):
            pass
        self.runner.touch(job)

    def sweep(self) -> None:
        """What nobody has used for a while: a few jobs that are made to be swept, and others."""
        for _ in range(3):
            old = f"old-{self._chance.getrandbits(48)}"
            self.store.create_job(BatchJob(old, "u", "c", old, "done", targets_total=2))
            row = [BatchTarget("", idx, "u", "{}", "done", '"old"') for idx in range(2)]
            self.store.put_targets(old, row)
        self.done["swept"] += self.store.sweep(now=time.time(), ttl=TTL, limit=50)

    def evict(self) -> None:
        """Down to a budget that rises slowly."""
        budget = START_BYTES + int(GROWTH * (time.monotonic() - self.begun))
        self.done["evicted"] += self.store.evict_oldest(max_bytes=budget, limit=50)

    def list(self) -> None:
        """A page of jobs, and the totals."""
        self.store.list_jobs(limit=20)
        self.store.stats()


def mix_until_told(mix: Mix) -> None:
    """One step after the other, with short pauses, until the input ends."""
    ended = threading.Event()
    reading = threading.Thread(target=lambda: (sys.stdin.read(), ended.set()))
    reading.start()
    while not ended.wait(0.01):
        mix.step()
    reading.join()


def work(url: str, seed: int) -> dict[str, int]:
    """The whole life of a store and a runner; what was done."""
    engine = create_store_engine(url, durability="normal")
    store = BatchRepository(engine)
    config = RunnerConfig(
        workers=WORKERS,
        worker_limit=WORKERS,
        targets_per_job=8,
        jobs_per_caller=1000,
        jobs_total=24,
        ttl=TTL,
        max_bytes=10**9,
        retry_wait=timedelta(milliseconds=20),
        poll_interval=timedelta(milliseconds=50),
    )
    runner = Runner(store, fetch, config, resolve_caller=lambda name, _: User(name))
    mix = Mix(store, runner, seed)
    with runner:
        print("ready", flush=True)
        mix_until_told(mix)
    mix.done["connections out"] = engine.pool.checkedout()  # type: ignore[attr-defined]
    engine.dispose()
    return dict(mix.done)


def main() -> None:
    """Work, then tell what was done and what is left."""
    url, seed = sys.argv[1], int(sys.argv[2])
    files = open_files(os.getpid())
    done = work(url, seed)
    left = {
        "connections out": done.pop("connections out"),
        "threads": threading.active_count() - 1,
        "files": open_files(os.getpid()) - files,
    }
    print(json.dumps(done), flush=True)
    print(json.dumps(left), flush=True)


if __name__ == "__main__":
    main()
