"""Two worker processes beside one with as many workers, on PostgreSQL."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from benchmarks.child import Child, ChildFailed, call
from benchmarks.context import Context

ALONE, APART = (1, 32), (2, 16)
"""So many processes, so many workers in each."""


def measure(context: Context) -> None:
    """The ratio of each round."""
    for number in range(context.rounds):
        context.say(f"processes, round {number + 1} of {context.rounds}")
        alone, apart = _drain(context, *ALONE), _drain(context, *APART)
        context.report.value("drain-postgresql-2x16", apart / alone)
        context.report.value("drain rate of 1 process × 32, PostgreSQL", alone)
        context.report.value("drain rate of 2 processes × 16, PostgreSQL", apart)


def _drain(context: Context, processes: int, workers: int) -> float:
    arguments: dict[str, Any] = {"durability": "full", **context.sizes.shape.arguments()}
    with context.databases.fresh("postgresql") as url, ExitStack() as stack:
        children = [
            stack.enter_context(
                Child("benchmarks.crowd:work", url=url, workers=workers, **arguments)
            )
            for _ in range(processes)
        ]
        for child in children:
            child.wait_ready()
        jobs = call("benchmarks.crowd:submit", url=url, **arguments)
        for child in children:
            child.go()
        answers = [child.result() for child in children]
    if sum(answer["ended"] for answer in answers) != jobs:
        raise ChildFailed(f"{jobs} jobs were submitted, and not as many ended: {answers}")
    working = [answer for answer in answers if answer["ended"]]
    begun: float = min(each["first"] for each in working)
    ended: float = max(each["last"] for each in working)
    return context.sizes.shape.total / (ended - begun)
