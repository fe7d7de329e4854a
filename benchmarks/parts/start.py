"""From the submit in one process to the start in another that is idle.

The runner is in this process; what submits is a child. A target's URL is the moment of its submit
by the clock that all processes of a machine share.
"""

from __future__ import annotations

import math
import queue
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic_ns, sleep
from typing import Any, Final

from batchmill import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from benchmarks.child import Child, wait_for_go
from benchmarks.context import Context
from benchmarks.databases import Missing
from benchmarks.goals import TITLES
from benchmarks.mill import Person

TIMES: Final = 200
"""Submits a round where the commit wakes the runner: enough that the 99th of 100 isn't the last."""
POLLED: Final = 40
"""Submits where the runner polls, once: each takes half an interval."""
POLL: Final = timedelta(seconds=1)
PAUSE: Final = timedelta(milliseconds=50)
"""The most before a submit, so that the runner is idle, and at no fixed moment of its polling."""
PATIENCE: Final = 60.0

Latencies = list[float]
"""Milliseconds from the call of submit to the call of fetch, shortest first."""


def measure(context: Context) -> None:
    """Each round on PostgreSQL; once where the runner polls."""
    for number in range(context.rounds):
        context.say(f"start, round {number + 1} of {context.rounds}")
        found = _latencies(context, "postgresql", TIMES, PAUSE)
        context.report.value("start-p50-postgresql", percentile(found, 0.5))
        context.report.value("start-p99-postgresql", percentile(found, 0.99))
    for name in ("sqlite-full", "mariadb"):
        context.say(f"start, {name}, polling")
        title = f"submit → start from another process, polling every second, {TITLES[name]}"
        try:
            for value in _latencies(context, name, POLLED, POLL):
                context.report.value(f"{title}, p50, ms", value)
                context.report.value(f"longest {title}, ms", value)
        except Missing as error:
            context.report.missing[title] = str(error)


def percentile(found: Latencies, share: float) -> float:
    """The least latency that such a share of all doesn't exceed."""
    return found[math.ceil(share * len(found)) - 1]


def _latencies(context: Context, name: str, times: int, pause: timedelta) -> Latencies:
    """So many submits to an idle runner, one after the other."""
    started: queue.SimpleQueue[float] = queue.SimpleQueue()

    def fetch(_context: Any, _caller: Any, target: Any) -> Result:
        begun = target.url.removeprefix("ns:")
        started.put((monotonic_ns() - int(begun)) / 1e6)
        return Result("")

    with (
        context.databases.fresh(name) as url,
        _runner(url, fetch) as runner,
        runner,
        Child("benchmarks.parts.start:submit_when_told", url=url) as child,
    ):
        child.wait_ready()
        found = [_once(child, started, pause) for _ in range(times + 1)]
    return sorted(found[1:])  # the first compiles each statement


def _once(child: Child, started: queue.SimpleQueue[float], pause: timedelta) -> float:
    sleep(random.uniform(0.2, 1) * pause.total_seconds())
    child.go()
    return started.get(timeout=PATIENCE)


@contextmanager
def _runner(url: str, fetch: Callable[[Any, Any, Any], Result]) -> Iterator[Runner[Person]]:
    """A shared runner on an engine of its own, not started; its database is migrated."""
    engine = create_store_engine(url)
    try:
        migrate.upgrade(engine)
        yield Runner(
            BatchRepository(engine),
            fetch,
            RunnerConfig(poll_interval=POLL, jobs_per_caller=1000, jobs_total=1000),
            resolve_caller=lambda _name, _class: Person(),
        )
    finally:
        engine.dispose()


def submit_when_told(url: str) -> None:
    """In a child: one submit for each line, until there are no more."""
    with _runner(url, lambda *_: Result("")) as runner:
        wait_for_go()
        _submit(runner)
        for _ in sys.stdin:
            _submit(runner)


def _submit(runner: Runner[Person]) -> None:
    """Submit a target whose URL is the present moment."""
    runner.submit(Person(), [f"ns:{monotonic_ns()}"])
