"""Runners of these tests, and fetches that stop and go."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import make_url

from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository
from tests.runner.helpers import PATIENCE, User
from tests.support.database import Database

UP_AGAIN = 30.0
"""Seconds after which a runner must have found its database again: far more than it takes."""


def resolve(name: str, _caller_class: str) -> User:
    """Any name is a caller."""
    return User(name)


class Gate:
    """A fetch that waits at a gate, and counts what came by."""

    def __init__(self, *, shut: bool = False) -> None:
        self.fetched: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._shut = shut
        self._waiting = 0

    def __call__(self, context: Any, caller: Any, target: Any) -> Result:
        with self._changed:
            self.fetched[target.url] += 1
            self._waiting += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: not self._shut, UP_AGAIN)
            self._waiting -= 1
        return Result(target.url)

    def wait_for(self, count: int) -> None:
        """Until so many stand at the gate."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._waiting >= count, PATIENCE)

    def open(self) -> None:
        """Let all of them go."""
        with self._changed:
            self._shut = False
            self._changed.notify_all()

    def shut(self) -> None:
        """The next ones wait."""
        with self._changed:
            self._shut = True


def runner_on(store: BatchRepository, fetch: Any, **given: Any) -> Runner[User]:
    """A shared runner of four workers, unless told otherwise; not started."""
    names = set(RunnerConfig.__dataclass_fields__) & set(given)
    config: dict[str, Any] = {
        "workers": 4,
        "worker_limit": 4,
        "jobs_per_caller": 100,
        "jobs_total": 100,
        "poll_interval": timedelta(milliseconds=50),
    }
    config |= {name: given.pop(name) for name in names}
    options: dict[str, Any] = {"resolve_caller": resolve} | given
    return Runner(store, fetch, RunnerConfig(**config), **options)


def submitted(runner: Runner[User], jobs: int, targets: int, name: str = "t") -> list[str]:
    """So many jobs of so many targets."""
    return [
        runner.submit(User("u"), [f"{name}-{job}-{idx}" for idx in range(targets)]).job_id
        for job in range(jobs)
    ]


def forget(database: Database) -> None:
    """Let a database's own connection go, which a restart of the server has ended."""
    raw, database._raw = database._raw, None
    if raw is not None:
        raw.close()


def at(url: str, port: int) -> str:
    """The URL with another port."""
    return make_url(url).set(port=port).render_as_string(hide_password=False)
