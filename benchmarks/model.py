"""How far one database goes, calculated from what was measured: see docs/benchmark.md."""

from __future__ import annotations

from typing import Final

from benchmarks.goals import TITLES
from benchmarks.report import Report

LOAD: Final = 0.5
"""The part of the measured rate to plan with: the rest is for peaks and for what else runs."""
WORKERS: Final = 32
RESULT_BYTES: Final = 1024
TARGETS_A_JOB: Final = 32
DAY: Final = 86_400

JOB_BYTES: Final = {"sqlite": 450, "postgresql": 660, "mariadb": 660}
TARGET_BYTES: Final = {"sqlite": 130, "postgresql": 235, "mariadb": 235}
"""What a kept job and a kept target take beside the result, indexes included: the growth of a file
by 20,000 jobs of two targets. MariaDB's is taken for PostgreSQL's."""
UNFILLED: Final = 1.4
"""For what pages leave empty: the most that was measured, of drained jobs of 1 to 32 targets with
results of 16 bytes to 16 KiB, on PostgreSQL without dead rows."""


def stored_bytes(database: str, targets: float, result_bytes: int = RESULT_BYTES) -> float:
    """What so many targets take on disk, in jobs of 32."""
    kind = database.partition("-")[0]
    each = TARGET_BYTES[kind] + result_bytes + JOB_BYTES[kind] / TARGETS_A_JOB
    return targets * each * UNFILLED


def rows(report: Report) -> list[tuple[str, ...]]:
    """For each database: the rate, and what half of it comes to in a day."""
    head = (
        "one database",
        "drain, targets/s",
        "targets a day at half of it",
        "jobs of 32 a day",
        "on disk a day, results of 1 KiB",
    )
    found: list[tuple[str, ...]] = [head]
    for subject in report.subjects:
        rate = subject.median("drain")
        if subject.name != "batchmill" or subject.workers != WORKERS or rate is None:
            continue
        daily = rate * LOAD * DAY
        found.append(
            (
                TITLES[subject.database],
                f"{rate:,.0f}",
                f"{daily / 1e6:,.0f} million",
                f"{daily / TARGETS_A_JOB / 1e6:,.1f} million",
                f"{stored_bytes(subject.database, daily) / 1e9:,.0f} GB",
            )
        )
    return found
