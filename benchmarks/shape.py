"""What is measured: the work that every subject does, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

CONTENT: Final = "x" * 1024
RESULT: Final = f'{{"content":"{CONTENT}"}}'
"""What batchmill stores for a result of 1 KiB; the floors store the same bytes."""

READS: Final = 5
"""How often everything is read back: once takes a few milliseconds only."""

Figures = dict[str, float]
"""Targets a second by column: ``submit``, ``drain``, ``read``; a column that can't be is absent."""


@dataclass(frozen=True, slots=True)
class Shape:
    """So many jobs of so many targets each."""

    jobs: int = 100
    targets: int = 32

    @property
    def total(self) -> int:
        """All targets."""
        return self.jobs * self.targets

    def arguments(self) -> dict[str, Any]:
        """As keywords for a child."""
        return {"jobs": self.jobs, "targets": self.targets}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything is measured; the titles of the rows are filled from it."""

    shape: Shape = field(default_factory=Shape)
    short: bool = False
    grouped: int = 8
    """Targets a commit of the second floor; 0 leaves it out."""
    kept: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    """Jobs in the databases beside which the cost of a target is measured, fewest first."""
    singles: int = 200
    """Submits of single targets to an idle runner, a round."""
    large: int = 100_000
    """Targets of the job whose progress is asked for."""
    removed: int = 100_000
    """Jobs of one sweep, or one eviction."""
    removals: int = 3
    """The most removals of each kind: they take minutes, and each has very many waits."""
    many: int = 100_000
    """Targets of the job with small results whose peak of memory is measured."""
    heavy: int = 1_000
    """The same with results of 1 MiB."""

    @property
    def fewest(self) -> int:
        """The fewest kept jobs."""
        return self.kept[0]

    @property
    def most(self) -> int:
        """The most kept jobs."""
        return self.kept[-1]


FULL: Final = Sizes()
SHORT: Final = Sizes(
    Shape(jobs=40, targets=16),  # enough jobs that 32 workers have something to do
    short=True,
    grouped=0,
    kept=(1_000, 30_000),
    singles=50,
    large=10_000,
    removed=2_000,
    removals=1,
)
"""A guard for the checks. Memory isn't less: then nothing could exceed its limit."""


def url_of(job: int, idx: int) -> str:
    """The target; every subject stores the same."""
    return f"https://example.org/{job}/{idx}"


def id_of(job: int) -> str:
    """A floor's job id, as long as batchmill's."""
    return f"{job:032x}"


def rate(total: int, work: Callable[[], object]) -> float:
    """How many a second, when this is the work."""
    begun = perf_counter()
    work()
    return total / (perf_counter() - begun)
