"""The peak of a process that does very much, over that of an interpreter that does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from batchmill import Result, Runner
from benchmarks.child import call
from benchmarks.context import Context
from benchmarks.mill import Person, config, opened
from benchmarks.parts.bare import peak
from benchmarks.parts.drains import split
from benchmarks.shape import CONTENT, Shape, url_of

MIB = 1 << 20


def measure(context: Context) -> None:
    """Once each: memory is not noisy, and this takes minutes."""
    bare = call("benchmarks.parts.bare:peak")
    many, heavy = context.sizes.many, context.sizes.heavy
    for key, name, count, nbytes in (
        ("targets-sqlite", "sqlite-normal", many, len(CONTENT)),
        ("results-sqlite", "sqlite-normal", heavy, MIB),
        ("results-postgresql", "postgresql", heavy, MIB),
    ):
        context.say(f"memory, {name}: {count:,} targets of {nbytes:,} bytes")
        with context.databases.fresh(name) as url:
            peak = call(
                "benchmarks.parts.memory:run",
                url=url,
                durability=split(name)[1],
                count=count,
                nbytes=nbytes,
            )
        context.report.value(f"memory-{key}", (peak - bare) / MIB)


def run(url: str, durability: str, count: int, nbytes: int) -> int:
    """In a child: one job submitted, drained and read by page; the peak in bytes."""

    def fetch(_context: Any, _caller: Any, target: Any) -> Result:
        return Result(target.url[-10:].rjust(nbytes, "x"))

    with (
        opened(url, durability) as store,
        Runner(store, fetch, config(2, Shape(1, count))) as runner,
    ):
        job_id = runner.submit(Person(), _urls(count)).job_id
        runner.wait(job_id)
        read = sum(len(row.result.content) for row in runner.results(job_id) if row.result)
        if read != count * nbytes:
            raise SystemExit(f"{read} bytes were read, not {count * nbytes}")
    return peak()


def _urls(count: int) -> Iterator[str]:
    return (url_of(0, idx) for idx in range(count))
