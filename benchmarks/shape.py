"""What is measured: the work, and the figures of one run over it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

JOBS: Final = 100
TARGETS: Final = 32
TOTAL: Final = JOBS * TARGETS
CONTENT: Final = "x" * 1024
RESULT: Final = f'{{"content":"{CONTENT}"}}'
"""What batchmill stores for a result of 1 KiB; the floor stores the same bytes."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Targets a second, and ``PRAGMA synchronous`` as the writing connection itself reads it."""

    submit: float
    drain: float
    read: float
    synchronous: int


def url_of(job: int, idx: int) -> str:
    """The target; the floor stores the same."""
    return f"https://example.org/{job}/{idx}"


def fresh(folder: Path, name: str) -> Path:
    """A path where no database is."""
    for old in folder.glob(f"{name}.db*"):
        old.unlink()
    return folder / f"{name}.db"
