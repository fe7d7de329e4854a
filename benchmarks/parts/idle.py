"""Submit → stored while nothing else is to do: what one target waits for."""

from __future__ import annotations

import queue
import statistics
from time import perf_counter, sleep
from typing import Any

from batchmill import Hooks, Result, Runner
from benchmarks.child import call
from benchmarks.context import Context
from benchmarks.mill import Person, config, opened, warm
from benchmarks.parts.drains import split
from benchmarks.shape import CONTENT, Shape, url_of

PAUSE = 0.005
"""Seconds between two submits, so that the runner is idle again."""


def measure(context: Context) -> None:
    """The median of each round, and the floor's: insert and store, one commit each."""
    for number in range(context.rounds):
        context.say(f"idle, round {number + 1} of {context.rounds}")
        for name in ("sqlite-full", "postgresql"):
            module, durability = split(name)
            asked: dict[str, Any] = {"durability": durability, "times": context.sizes.singles}
            with context.databases.fresh(name) as url:
                own = call("benchmarks.parts.idle:run", url=url, **asked)
            with context.databases.fresh(name) as url:
                base = call(f"benchmarks.floors.{module}:latency", url=url, **asked)
            context.report.value(f"idle-{name}", own)
            context.report.value(f"idle floor, {name}", base)


def run(url: str, durability: str, times: int) -> float:
    """In a child: the median in ms from the call of submit to the hook after the commit."""
    stored: queue.SimpleQueue[float] = queue.SimpleQueue()
    found: list[float] = []
    with opened(url, durability) as store:
        warm(store)
        with Runner(
            store,
            lambda _context, _caller, _target: Result(CONTENT),
            config(1, Shape(8, 1)),
            hooks=Hooks(target=lambda *_: stored.put(perf_counter())),
        ) as runner:
            for number in range(times):
                sleep(PAUSE)
                begun = perf_counter()
                runner.submit(Person(), [url_of(number, 0)])
                found.append(stored.get(timeout=60) - begun)
    return statistics.median(found) * 1000
