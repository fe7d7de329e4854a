"""The stores that every rule is tested on, and a clock that only tests move."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from batchmill.runner import Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import MemoryStore
from tests.spec.parts import CONFIG, Seen, Start


@pytest.fixture(params=["memory", "sqlite-file", "sqlite-memory"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[MemoryStore | BatchRepository]:
    """An empty store of each kind; the SQL ones leave no connection checked out."""
    if request.param == "memory":
        yield MemoryStore()
        return
    in_file = request.param == "sqlite-file"
    url = f"sqlite:///{tmp_path / 'spec.db'}" if in_file else "sqlite://"
    engine = create_store_engine(url, durability="normal")
    migrate.upgrade(engine)
    yield BatchRepository(engine)
    checked_out = engine.pool.checkedout()  # type: ignore[attr-defined]
    engine.dispose()
    assert checked_out == 0


class Clock:
    """Unix seconds that stand still until a test moves them."""

    def __init__(self) -> None:
        self._now = 1_000_000.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            return self._now

    def move(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@pytest.fixture
def clock() -> Clock:
    """A clock at 1,000,000."""
    return Clock()


@pytest.fixture
def seen() -> Seen:
    """What the runner's hooks were told."""
    return Seen()


@pytest.fixture
def runner_of(store: Any, clock: Clock, seen: Seen) -> Start:
    """Makes a runner on the store, with the test's clock and hooks; closed at the end of with."""

    @contextmanager
    def make(fetch: Any, config: RunnerConfig = CONFIG, **more: Any) -> Iterator[Runner[Any]]:
        with Runner(store, fetch, config, hooks=seen.hooks(), clock=clock, **more) as runner:
            yield runner

    return make
