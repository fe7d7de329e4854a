"""progress() of a large job beside a small one: it must not count rows."""

from __future__ import annotations

import statistics
from time import perf_counter

from batchmill import Result, Runner
from benchmarks.child import call
from benchmarks.context import Context
from benchmarks.mill import Person, config, opened
from benchmarks.shape import Shape, url_of

SMALL = 10
CALLS = 200
"""How often each is asked in a row; the two alternate."""
TURNS = 10


def measure(context: Context) -> None:
    """The ratio of each round."""
    for number in range(context.rounds):
        context.say(f"progress, round {number + 1} of {context.rounds}")
        with context.databases.fresh("sqlite-normal") as url:
            large = context.sizes.large
            answer = call("benchmarks.parts.progress:run", url=url, large=large, small=SMALL)
        context.report.value("progress-sqlite", answer["large"] / answer["small"])
        context.report.value("progress() of the large job, µs", answer["large"] * 1e6)


def run(url: str, large: int, small: int) -> dict[str, float]:
    """In a child: the seconds of one call, by job; medians of turns that alternate."""
    with opened(url, "normal") as store:
        runner = Runner(store, lambda *_: Result(""), config(1, Shape(2, large)))
        ids = {
            name: runner.submit(Person(), (url_of(0, idx) for idx in range(count))).job_id
            for name, count in (("large", large), ("small", small))
        }
        found: dict[str, list[float]] = {name: [] for name in ids}
        for _ in range(TURNS):
            for name, job_id in ids.items():
                begun = perf_counter()
                for _ in range(CALLS):
                    runner.progress(job_id)
                found[name].append((perf_counter() - begun) / CALLS)
        runner.close()
    return {name: statistics.median(times) for name, times in found.items()}
