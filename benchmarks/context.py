"""What every part is given."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.databases import Databases
from benchmarks.report import Report
from benchmarks.shape import Sizes


@dataclass(frozen=True, slots=True)
class Context:
    """One run: where it stores, what it has found, and how much it does."""

    report: Report
    databases: Databases
    folder: Path

    @property
    def sizes(self) -> Sizes:
        """How much of everything."""
        return self.report.sizes

    @property
    def rounds(self) -> int:
        """How often everything is measured."""
        return self.report.rounds

    def say(self, text: str) -> None:
        """Tell who waits what goes on."""
        print(text, file=sys.stderr, flush=True)
