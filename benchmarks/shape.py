"""What is measured: the work that every subject does, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
