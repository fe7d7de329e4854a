"""A process that submits, drains and sweeps until it is killed, or its stdin ends.

It notes in a file of its own what the store has acknowledged to it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from batchmill.errors import RetryLater, SubmitRejected, TargetError
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine
from batchmill.store.capabilities import capabilities_of
from batchmill.store.tx import is_unwatched
from tests.kill.board import Announcer, Board
from tests.runner.helpers import User
from tests.support.injection import TellingConnection

HOUR = timedelta(hours=1)
CONFIG = RunnerConfig(
    workers=3,
    worker_limit=3,
    targets_per_job=10,
    jobs_per_caller=100,
    jobs_total=12,
    retry_wait=timedelta(milliseconds=5),
    hold_for=timedelta(seconds=1),
    poll_interval=timedelta(milliseconds=10),
    max_attempts=1000,
)


def fetch(context: Any, _caller: User, target: Any) -> Result:
    """The n-th target of a job: some are busy at first, some fail."""
    number = int(target.url.rsplit("/", 1)[1])
    if number == 1 and context.attempt == 1:
        raise RetryLater
    if number == 2:
        raise TargetError("not there")
    return Result(target.url)


class Noted:
    """A store that says which call is under way, and notes down what it has acknowledged."""

    def __init__(self, store: BatchRepository, announcer: Announcer, notes: Path) -> None:
        self._store = store
        self._announcer = announcer
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **named: Any) -> Any:
            self._announcer.called(name)
            answer = method(*args, **named)
            self._acknowledged(name, answer)
            return answer

        return call

    def _acknowledged(self, name: str, answer: Any) -> None:
        if name == "submit_job" and answer.job_id is not None:
            os.write(self._notes, f"job {answer.job_id}\n".encode())
        elif name == "exchange":
            for token in answer.stored:
                os.write(self._notes, f"token {token}\n".encode())


def submit_and_sweep(runner: Runner[User], store: Any, seed: int, ended: threading.Event) -> None:
    """Jobs of three to six targets, as fast as the caps let them in; a few old jobs go at times."""
    chance = random.Random(seed)
    while not ended.is_set():
        job, count = chance.getrandbits(40), chance.randint(3, 6)
        try:
            runner.submit(User("u"), [f"{seed}/{job}/{idx}" for idx in range(count)])
        except SubmitRejected:
            ended.wait(0.002)
        if chance.random() < 0.2:
            store.sweep(now=time.time(), ttl=HOUR, limit=1)


def main() -> None:
    """Say that it is ready, begin at the first line, end with the input."""
    given = json.loads(sys.argv[1])
    on_sqlite = given["url"].startswith("sqlite")
    telling = {"connect_args": {"factory": TellingConnection}} if on_sqlite else {}
    engine = create_store_engine(given["url"], **telling)
    announcer = Announcer(engine, Board(Path(given["board"])))
    store = Noted(BatchRepository(engine), announcer, Path(given["notes"]))
    assert is_unwatched(engine, capabilities_of(engine.dialect)) == on_sqlite  # as in the field
    runner = Runner(store, fetch, CONFIG, resolve_caller=lambda name, _: User(name))
    print("ready", flush=True)
    sys.stdin.readline()
    ended = threading.Event()
    with runner:
        arguments = (runner, store, given["seed"], ended)
        submitting = threading.Thread(target=submit_and_sweep, args=arguments)
        submitting.start()
        sys.stdin.read()
        ended.set()
        submitting.join()
        while runner._store.count_live_jobs():
            runner.reconcile()
            ended.wait(0)
            time.sleep(0.01)
    engine.dispose()


if __name__ == "__main__":
    main()
