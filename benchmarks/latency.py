"""From the submit in one process to the start in another that is idle: ``-m benchmarks.latency``.

The runner is in this process; what submits is a child, but for the rows "same process". A target's
URL is the moment of its submit by the clock that all processes of a machine share.
"""

from __future__ import annotations

import argparse
import math
import queue
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from os import getpid
from pathlib import Path
from time import monotonic_ns, sleep
from typing import Any, Final, NamedTuple

from batchmill import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from benchmarks.child import Child, wait_for_go
from benchmarks.databases import Databases, Missing

TIMES: Final = 200
POLLED: Final = 5
"""How many times fewer submits where the runner polls: each takes half an interval."""
POLL: Final = timedelta(seconds=1)
PAUSE: Final = timedelta(milliseconds=50)
"""The most before a submit, so that the runner is idle, and at no fixed moment of its polling."""
PATIENCE: Final = 60.0

Latencies = list[float]
"""Milliseconds from the call of submit to the call of fetch, shortest first."""


class Person:
    """Who submits."""

    def __init__(self, name: str = "benchmark") -> None:
        self.name = name


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES, help=f"submits a row ({TIMES})")
    times = max(1, parser.parse_args().times)
    print(f"{'submit → start, ms':52} {'submits':>7} {'p50':>8} {'p90':>8} {'p99':>8} {'max':>8}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server may run as a user of its own
        databases = Databases(Path(folder))
        try:
            for title, name, how in _ROWS:
                print(_row(title, databases, name, times, how), flush=True)
        finally:
            databases.close()
    return 0


class How(NamedTuple):
    """Whether another process submits, and whether the runner only polls then."""

    apart: bool
    polls: bool = False


_ROWS: Final = (
    ("SQLite, same process", "sqlite-full", How(apart=False)),
    ("PostgreSQL, same process", "postgresql", How(apart=False)),
    ("PostgreSQL, another process, LISTEN", "postgresql", How(apart=True)),
    ("SQLite, another process, polling every second", "sqlite-full", How(apart=True, polls=True)),
    ("MariaDB, another process, polling every second", "mariadb", How(apart=True, polls=True)),
)


def _row(title: str, databases: Databases, name: str, times: int, how: How) -> str:
    try:
        found = measure(databases, name, max(1, times // POLLED if how.polls else times), how)
    except Missing as error:
        return f"{title:52} not measured: {error}"
    figures = (percentile(found, share) for share in (0.5, 0.9, 0.99, 1))
    return f"{title:52} {len(found):7}" + "".join(f" {figure:8.1f}" for figure in figures)


def percentile(found: Latencies, share: float) -> float:
    """The least latency that such a share of all doesn't exceed."""
    return found[math.ceil(share * len(found)) - 1]


def measure(databases: Databases, name: str, times: int, how: How) -> Latencies:
    """So many submits to an idle runner, one after the other."""
    started: queue.SimpleQueue[float] = queue.SimpleQueue()

    def fetch(_context: Any, _caller: Any, target: Any) -> Result:
        begun = target.url.removeprefix("ns:")
        started.put((monotonic_ns() - int(begun)) / 1e6)
        return Result("")

    with databases.fresh(name) as url:
        _migrate(url)
        with _runner(url, fetch) as runner, runner, _submitter(url, runner, how) as submit:
            pause = (POLL if how.polls else PAUSE).total_seconds()
            found = [_once(submit, started, pause) for _ in range(times + 1)]
    return sorted(found[1:])  # the first compiles each statement


def _once(submit: Callable[[], object], started: queue.SimpleQueue[float], pause: float) -> float:
    sleep(random.uniform(0.2, 1) * pause)
    submit()
    return started.get(timeout=PATIENCE)


def _migrate(url: str) -> None:
    engine = create_store_engine(url)
    migrate.upgrade(engine)
    engine.dispose()


@contextmanager
def _runner(url: str, fetch: Callable[[Any, Any, Any], Result]) -> Iterator[Runner[Person]]:
    """A shared runner on an engine of its own, not started."""
    engine = create_store_engine(url)
    caps = {"jobs_per_caller": 1000, "jobs_total": 1000}
    try:
        yield Runner(
            BatchRepository(engine),
            fetch,
            RunnerConfig(poll_interval=POLL, **caps),  # type: ignore[arg-type]
            resolve_caller=lambda name, _: Person(name),
        )
    finally:
        engine.dispose()


@contextmanager
def _submitter(url: str, runner: Runner[Person], how: How) -> Iterator[Callable[[], object]]:
    """What submits one target of the moment in which it does so."""
    if not how.apart:
        yield lambda: submit_one(runner)
        return
    with Child("benchmarks.latency:submit_when_told", url=url) as child:
        child.wait_ready()
        yield child.go


def submit_one(runner: Runner[Person]) -> None:
    """Submit a target whose URL is the present moment."""
    runner.submit(Person(f"benchmark {getpid()}"), [f"ns:{monotonic_ns()}"])


def submit_when_told(url: str) -> None:
    """In a child: one submit for each line, until there are no more."""
    with _runner(url, lambda *_: Result("")) as runner:
        wait_for_go()
        submit_one(runner)
        for _ in sys.stdin:
            submit_one(runner)


if __name__ == "__main__":
    sys.exit(main())
