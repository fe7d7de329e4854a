"""Submit → start from another process, while nothing else is to do."""

from __future__ import annotations

from benchmarks.context import Context
from benchmarks.databases import Missing
from benchmarks.goals import TITLES
from benchmarks.latency import POLLED, TIMES, How, measure, percentile

ROWS = (
    ("postgresql", "LISTEN", How(apart=True)),
    ("sqlite-full", "polling", How(apart=True, polls=True)),
    ("mariadb", "polling", How(apart=True, polls=True)),
)


def measure_all(context: Context) -> None:
    """One row of each: two hundred submits where a push wakes the runner, fewer where it polls."""
    for name, title, how in ROWS:
        times = TIMES // POLLED if how.polls else TIMES
        context.say(f"latency, {name}, {times} submits from another process")
        try:
            found = measure(context.databases, name, times, how)
        except Missing as error:
            context.report.missing[f"submit → start, {TITLES[name]}"] = str(error)
            continue
        for share in (0.5, 0.99):
            value = percentile(found, share)
            if name == "postgresql":
                context.report.value(f"latency-p{share * 100:.0f}-postgresql", value)
            else:
                context.report.value(
                    f"submit → start from another process, {name}, {title}, p{share * 100:.0f}, ms",
                    value,
                )
