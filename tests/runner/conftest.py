from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batchmill.runner import JobStore, Runner, RunnerConfig
from batchmill.testing import MemoryStore
from tests.runner.helpers import Clock, Fetches


def sqlite_store(path: Path) -> Any:
    """A repository on a file; the test is skipped where there is none in this build."""
    store = importlib.import_module("batchmill.store")
    return store.BatchRepository(store.create_store_engine(f"sqlite:///{path}"))


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty, migrated file, made once and copied for each test."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    migrate = importlib.import_module("batchmill.store.migrate")
    store = sqlite_store(path)
    migrate.upgrade(store.engine)
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.engine.dispose()
    return path


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JobStore]:
    """Each store that a runner is tested on."""
    if request.param == "memory":
        yield MemoryStore()
        return
    path = tmp_path / "jobs.db"
    shutil.copy(request.getfixturevalue("migrated"), path)
    repository = sqlite_store(path)
    yield repository
    checked_out = repository.engine.pool.checkedout()
    repository.engine.dispose()
    assert checked_out == 0, "a connection was left checked out"


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until the test moves it."""
    return Clock()


@pytest.fixture
def fetches() -> Fetches:
    """A fetch that records and holds."""
    return Fetches()


@pytest.fixture
def make(store: JobStore, fetches: Fetches) -> Iterator[Callable[..., Runner[Any]]]:
    """Makes runners on the test's store; they are closed after it.

    Keywords that are fields of ``RunnerConfig`` go into it, the others to the runner.
    """
    runners: list[Runner[Any]] = []

    def make_one(*, on: Any = None, fetch: Any = None, start: bool = True, **given: Any) -> Any:
        names = set(RunnerConfig.__dataclass_fields__) & set(given)
        config = {
            "jobs_per_caller": 100,
            "jobs_total": 100,
            "worker_limit": 64,
            "poll_interval": timedelta(milliseconds=20),
            "retry_wait": timedelta(milliseconds=10),
            **{name: given.pop(name) for name in names},
        }
        runner = Runner(on or store, fetch or fetches, RunnerConfig(**config), **given)
        runners.append(runner)
        return runner.start() if start else runner

    yield make_one
    fetches.release()
    for runner in runners:
        runner.close(5)
