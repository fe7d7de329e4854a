"""What one target costs beside ever more kept jobs."""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks import kept
from benchmarks.child import call
from benchmarks.context import Context
from benchmarks.parts.drains import split

RESULT_BYTES = 64
"""Of each kept target: the rows' number is what is varied, not the disk's size."""
NAMES = ("sqlite-normal", "postgresql")
"""NORMAL, because a commit that waits for the disk would hide what the rest costs."""
WORKERS = 1


def measure(context: Context) -> None:
    """Each round drains the same work beside every number of kept jobs, and deletes it again."""
    for name in NAMES:
        with ExitStack() as stack:
            urls = {
                size: stack.enter_context(context.databases.fresh(name))
                for size in context.sizes.kept
            }
            for size, url in urls.items():
                context.say(f"growth, {name}: filling in {size:,} jobs")
                kept.fill(url, size, result_bytes=RESULT_BYTES)
            for number in range(context.rounds):
                context.say(f"growth, {name}, round {number + 1} of {context.rounds}")
                _round(context, name, urls)


def key(column: str, name: str, size: int) -> str:
    """The extra that holds a cost: µs a target beside so many kept jobs."""
    return f"{column}, µs a target, {name}, {size} kept jobs"


def _round(context: Context, name: str, urls: dict[int, str]) -> None:
    costs: dict[int, float] = {}
    for size, url in urls.items():
        figures = call(
            "benchmarks.mill:run",
            url=url,
            durability=split(name)[1],
            workers=WORKERS,
            cleaned=True,
            **context.sizes.shape.arguments(),
        )
        kept.settle(url)
        costs[size] = 1e6 / figures["drain"]
        for column in ("submit", "drain"):
            context.report.value(key(column, name, size), 1e6 / figures[column])
    context.report.value(f"growth-{name.partition('-')[0]}", costs[max(costs)] / costs[min(costs)])
