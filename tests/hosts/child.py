"""A runner in a process of its own, told by a line of JSON what it is and what its fetches do.

It says ``ready`` once it runs, then a line for each fetch that begins; it ends in order at SIGTERM
or with its input. ``fetch`` is how many seconds a fetch takes; null: until a line comes in.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine
from tests.runner.helpers import User


class Journal:
    """A store that notes when each exchange began and ended, what it stored and what it claimed.

    By the monotonic clock, which all processes of a host share.
    """

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._file = Path(path).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def exchange(self, runner_id: str, outcomes: Any, **given: Any) -> Any:
        """The store's, noted."""
        begun = time.monotonic()
        answer = self._store.exchange(runner_id, outcomes, **given)
        noted = {
            "begun": begun,
            "ended": time.monotonic(),
            "stored": [(o.job_id, o.idx) for o in outcomes if o.token in answer.stored],
            "claims": [(claim.job_id, claim.idx) for claim in answer.claims],
        }
        self._file.write(json.dumps(noted) + "\n")
        return answer


class Child:
    """What the process does."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.ended = threading.Event()
        self.lines = threading.Semaphore(0)
        self.saying = threading.Lock()

    def say(self, *words: object) -> None:
        """A line for the parent, whole, whichever thread says it."""
        with self.saying:
            print(*words, flush=True)

    def listen(self) -> None:
        """Each line lets one fetch go; the end of the input ends the process."""
        while sys.stdin.readline():
            self.lines.release()
        self.ended.set()

    def fetch(self, context: Any, _caller: User, target: Any) -> Result:
        """As long as was asked for; the result tells who fetched."""
        if self.given.get("loud"):
            self.say("fetch", context.job_id, context.idx, context.attempt)
        if self.given["fetch"] is None:
            self.lines.acquire()
        else:
            time.sleep(self.given["fetch"])
        return Result(self.given["name"], meta={"attempt": context.attempt})

    def run(self) -> None:
        """Until it is told to end."""
        engine = create_store_engine(self.given["url"])
        workers = self.given.get("workers", 1)
        config = RunnerConfig(
            workers=workers,
            worker_limit=workers,
            hold_for=timedelta(seconds=self.given["hold_for"]),
            poll_interval=timedelta(seconds=self.given.get("poll", 0.1)),
            max_attempts=self.given.get("max_attempts", 100),
        )
        store: Any = BatchRepository(engine)
        if "journal" in self.given:
            store = Journal(store, self.given["journal"])
        runner = Runner(
            store,
            self.fetch,
            config,
            resolve_caller=lambda name, _: User(name),
            runner_id=self.given["name"],
        )
        with runner:
            self.say("ready")
            threading.Thread(target=self.listen, daemon=True).start()
            self.ended.wait()
            runner.close(self.given.get("grace", 0.5))
        engine.dispose()
        self.say("ended")


def run(given: dict[str, Any]) -> None:
    """Log to stderr, and run until SIGTERM or the end of the input."""
    logging.basicConfig(
        level=logging.INFO, format="%(created).3f %(levelname)s %(message)s", stream=sys.stderr
    )
    child = Child(given)
    signal.signal(signal.SIGTERM, lambda *_: child.ended.set())
    child.run()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
