"""Submit → start on PostgreSQL, from another process, while nothing else is to do."""

from __future__ import annotations

from benchmarks import latency
from benchmarks.context import Context


def measure(context: Context) -> None:
    """Median and 99th percentile of each round."""
    times = latency.TIMES // 4 if context.short else latency.TIMES
    for number in range(context.rounds):
        context.say(f"start, round {number + 1} of {context.rounds}")
        found = latency.measure(context.databases, "postgresql", times, latency.How(apart=True))
        context.report.value("start-p50-postgresql", latency.percentile(found, 0.5))
        context.report.value("start-p99-postgresql", latency.percentile(found, 0.99))
