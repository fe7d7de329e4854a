"""What the figures have to reach: each row of the table, its required and its aimed value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.shape import Sizes

Verdict = Literal["aim reached", "reached", "missed", "reported", "not measured", "ok", "accident"]


def is_longest(key: str) -> bool:
    """Whether the longest of all rounds counts and not their median: of waits, one is enough."""
    return key.startswith(("stall-", "longest "))


@dataclass(frozen=True, slots=True)
class Goal:
    """One row: at least ``required``, or with ``at_most`` no more; None where nothing is asked.

    ``unit`` is "" for a ratio. The title names the work by the fields of the sizes.
    """

    key: str
    part: str
    title: str
    required: float | None = None
    aim: float | None = None
    unit: Literal["", "ms", "MiB"] = ""
    at_most: bool = False

    def titled(self, sizes: Sizes) -> str:
        """The title, for so much work."""
        return self.title.format(of=sizes)

    def judge(self, value: float | None) -> Verdict:
        """Whether a value is enough; a missed aim alone is only reported."""
        if value is None:
            return "not measured"
        if self.aim is not None and self._enough(value, self.aim):
            return "aim reached"
        if self.required is None:
            return "reported"
        return "reached" if self._enough(value, self.required) else "missed"

    def guard(self, value: float | None) -> Verdict:
        """What the short form says: it does too little to reach or to miss anything."""
        if value is None:
            return "not measured"
        if self.bound is None:
            return "reported"
        return "accident" if self.is_accident(value) else "ok"

    @property
    def bound(self) -> float | None:
        """Half of what is required, or twice, where less is better: beyond is an accident.

        There is none for times in milliseconds: they say how slow the disk is at the moment.
        """
        if self.required is None or self.unit == "ms":
            return None
        return self.required * 2 if self.at_most else self.required / 2

    def is_accident(self, value: float | None) -> bool:
        """Whether a value is beyond the bound."""
        return value is not None and self.bound is not None and not self._enough(value, self.bound)

    def _enough(self, value: float, limit: float) -> bool:
        return value <= limit if self.at_most else value >= limit


def _drains() -> list[Goal]:
    asked: dict[tuple[str, int], tuple[float | None, float | None]] = {
        ("sqlite-full", 1): (0.33, 0.5),
        ("sqlite-full", 8): (1.2, 2),
        ("sqlite-full", 32): (1.6, 3),
        ("sqlite-normal", 1): (0.15, 0.25),
        ("sqlite-normal", 8): (0.4, 0.7),
        ("sqlite-normal", 32): (0.55, 1.0),
        ("postgresql", 1): (0.3, 0.5),
        ("postgresql", 8): (None, None),
        ("postgresql", 32): (1.7, 3),
        ("mariadb", 1): (None, None),
        ("mariadb", 8): (None, None),
        ("mariadb", 32): (1.0, 2),
    }
    return [
        Goal(
            f"drain-{name}-{workers}",
            name.partition("-")[0],
            f"drain, {TITLES[name]}, {workers} worker{'s' * (workers > 1)} ÷ floor",
            required,
            aim,
        )
        for (name, workers), (required, aim) in asked.items()
    ]


def _both_ways() -> list[Goal]:
    return [
        Goal(
            f"{column}-{name}",
            name.partition("-")[0],
            f"{title}, {TITLES[name]} ÷ floor",
            None if name == "mariadb" else required,
            None if name == "mariadb" else aim,
        )
        for column, title, required, aim in (
            ("submit", "submit, one job of {of.shape.targets} a transaction", 0.15, 0.4),
            ("read", "read back, rows", 0.2, 0.5),
        )
        for name in TITLES
    ]


def _stalls() -> list[Goal]:
    return [
        Goal(
            f"stall-{what}-{name}",
            "stalls",
            f"longest wait of a writer while {article} of {{of.removed:,}} jobs runs, {title}",
            100,
            25,
            "ms",
            at_most=True,
        )
        for what, article in (("sweep", "a sweep"), ("evict", "an eviction"))
        for name, title in (("sqlite", "SQLite FULL"), ("postgresql", "PostgreSQL"))
    ]


def _at_most(key: str, title: str, required: float | None, aim: float | None, unit: str) -> Goal:
    part = key.partition("-")[0]
    return Goal(key, part, title, required, aim, unit, at_most=True)  # type: ignore[arg-type]


TITLES: Final = {
    "sqlite-full": "SQLite FULL",
    "sqlite-normal": "SQLite NORMAL",
    "postgresql": "PostgreSQL",
    "mariadb": "MariaDB",
}
"""The databases as they are measured, and how the tables name them."""

_KEPT: Final = "one target's cost with {of.most:,} kept jobs (× 2 targets) ÷ with {of.fewest:,}"
_START: Final = "submit → start from another process, idle, PostgreSQL"
_MEMORY: Final = "peak memory over the interpreter's own"
_MANY: Final = "{of.many:,} targets"
_HEAVY: Final = "{of.heavy:,} × 1 MiB"

GOALS: Final = [
    *_drains(),
    Goal(
        "drain-postgresql-2x16",
        "processes",
        "drain, PostgreSQL, 2 processes × 16 workers ÷ one process × 32",
        aim=1.3,
    ),
    *_both_ways(),
    _at_most("idle-sqlite-full", "submit → stored, idle, p50, SQLite FULL", 2, 1, "ms"),
    _at_most("idle-postgresql", "submit → stored, idle, p50, PostgreSQL", 4, 2.5, "ms"),
    _at_most("start-p50-postgresql", f"{_START}, p50", 20, None, "ms"),
    _at_most("start-p99-postgresql", f"{_START}, p99", 100, None, "ms"),
    _at_most("growth-sqlite", f"{_KEPT}, SQLite NORMAL", 1.2, 1.05, ""),
    _at_most("growth-postgresql", f"{_KEPT}, PostgreSQL", 1.2, 1.05, ""),
    *_stalls(),
    _at_most("memory-targets-sqlite", f"{_MEMORY}: {_MANY}, SQLite", 150, 80, "MiB"),
    _at_most("memory-results-sqlite", f"{_MEMORY}: {_HEAVY}, SQLite", 150, 80, "MiB"),
    _at_most("memory-results-postgresql", f"{_MEMORY}: {_HEAVY}, PostgreSQL", 150, 80, "MiB"),
    _at_most("progress-sqlite", "progress(), a job of {of.large:,} targets ÷ of 10", 1.2, None, ""),
    _at_most("imports-batchmill", "import batchmill, over Python's own", 60, 30, "ms"),
    _at_most("imports-runner", "import batchmill.runner, over Python's own", 60, 30, "ms"),
]
"""Every row of the table, in its order."""
