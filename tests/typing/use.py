"""Typical use, for mypy --strict and pyright to check: it is never run.

An application sees its own caller type in its fetch, and each store fits the runner's Protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

import batchmill
from batchmill import (
    BatchJob,
    BatchRepository,
    BatchTarget,
    FetchContext,
    Hooks,
    Job,
    JobReport,
    JobStatus,
    JobStore,
    Options,
    Result,
    RetryLater,
    Runner,
    RunnerConfig,
    StoreStats,
    Target,
    TargetReport,
    create_store_engine,
    migrate,
)
from batchmill.testing import MemoryStore


@dataclass
class Account:
    """An application's own kind of caller."""

    name: str
    api_key: str


def fetch(context: FetchContext, caller: Account, target: Target) -> Result:
    """A fetch sees the application's own caller."""
    assert_type(context.job_id, str)
    assert_type(context.cancelled, bool)
    if context.wait(0.1):
        raise RetryLater(after=1.5)
    return Result(target.url, meta={"key": caller.api_key})


def resolve(name: str, caller_class: str) -> Account | None:
    """A shared runner finds the caller of a stored job."""
    return Account(name, caller_class) if name else None


def stores() -> Iterator[JobStore]:
    """Each store fits what the runner asks for."""
    yield BatchRepository(create_store_engine("sqlite://"))
    yield MemoryStore()


def run(store: JobStore, account: Account) -> None:
    """A job from submit to its results."""
    config = RunnerConfig(workers=4, worker_limit=8, ttl=timedelta(hours=1))
    hooks = Hooks(job=print, depth=print)
    with Runner(store, fetch, config, hooks=hooks, resolve_caller=resolve) as runner:
        job_id, reused = runner.submit(
            account, ["https://example.org/", Target("https://example.com/", Options(mode="text"))]
        )
        assert_type(job_id, str)
        assert_type(reused, bool)
        assert_type(runner.wait(job_id, timeout=10), Job)
        assert_type(runner.progress(job_id), Job | None)
        report = runner.status(job_id, caller=account)
        assert_type(report, JobReport | None)
        for target in runner.results(job_id):
            assert_type(target, TargetReport)
            assert_type(target.result, Result | None)
        assert_type(runner.cancel(job_id), bool)


def use_repository(engine: Engine, session: Session, connection: Connection) -> None:
    """The repository's own methods."""
    migrate.upgrade(engine)
    migrate.verify(connection)
    assert_type(migrate.current(engine), str | None)
    assert_type(migrate.sql("sqlite://"), str)
    repository = BatchRepository(engine)
    repository.bound_to(session).create_job(BatchJob("id", "caller", "fleet", "key"))
    repository.bound_to(connection).put_targets("id", [BatchTarget("id", 0, "url")])
    assert_type(repository.get_job("id", touch_at=1.5), BatchJob | None)
    assert_type(repository.get_targets("id"), list[BatchTarget] | None)
    assert_type(repository.sweep(now=1, ttl=timedelta(0)), int)
    assert_type(repository.stats(), StoreStats)
    repository.set_job_status("id", JobStatus.DONE, now=1)


def use_of_any_name(options: Mapping[str, Any]) -> None:
    """The package itself offers every name."""
    batchmill.Target("url", options)
    assert_type(batchmill.__version__, str)
