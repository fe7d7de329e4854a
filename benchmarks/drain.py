"""How fast jobs are submitted, drained and read back, beside the floor: ``-m benchmarks.drain``.

In each round the floor runs first and then batchmill with each number of workers, at the same
durability; a ratio is of the two figures of one round, and the table holds the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks import floor, mill
from benchmarks.shape import JOBS, TARGETS, Figures

WORKERS = (1, 8, 32)
DURABILITIES = ("full", "normal")
REQUIRED = {("normal", 1): 0.10, ("normal", 8): 0.30}
"""Drain over floor, as the issue of this benchmark asks; less is reported, and exits with 1."""


def main() -> int:
    """Run, print the table, and say whether the required ratios were met."""
    args = _arguments()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        rounds = [_round(Path(folder), number, args.rounds) for number in range(args.rounds)]
    rows = _rows(rounds)
    print(_table(rows, args.rounds))
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    missed = [key for key, least in REQUIRED.items() if _ratio(rows, key) < least]
    for durability, workers in missed:
        print(f"below the required ratio: {durability.upper()}, {workers} workers")
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds; the medians are printed")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--folder", help="where the databases go; the system's own if left out")
    return parser.parse_args()


Key = tuple[str, int]
"""Durability and workers, 0 workers for the floor."""


def _round(folder: Path, number: int, rounds: int) -> dict[Key, Figures]:
    figures: dict[Key, Figures] = {}
    for durability in DURABILITIES:
        print(f"round {number + 1} of {rounds}, {durability}", file=sys.stderr)
        figures[durability, 0] = floor.run(folder, durability)
        for workers in WORKERS:
            figures[durability, workers] = mill.run(folder, durability, workers)
    return figures


def _rows(rounds: list[dict[Key, Figures]]) -> list[dict[str, object]]:
    collected: dict[Key, list[tuple[Figures, Figures]]] = defaultdict(list)
    for figures in rounds:
        for key, each in figures.items():
            collected[key].append((each, figures[key[0], 0]))
    return [_row(key, pairs) for key, pairs in collected.items()]


def _row(key: Key, pairs: list[tuple[Figures, Figures]]) -> dict[str, object]:
    row: dict[str, object] = {"durability": key[0], "workers": key[1]}
    (row["synchronous"],) = {own.synchronous for own, _ in pairs}
    for name in COLUMNS:
        row[name] = statistics.median(getattr(own, name) for own, _ in pairs)
        row[f"{name}_ratio"] = statistics.median(
            getattr(own, name) / getattr(base, name) for own, base in pairs
        )
    return row


def _ratio(rows: list[dict[str, object]], key: Key) -> float:
    (ratio,) = (row["drain_ratio"] for row in rows if (row["durability"], row["workers"]) == key)
    return float(str(ratio))


COLUMNS = ("submit", "drain", "read")


def _table(rows: list[dict[str, object]], rounds: int) -> str:
    work = f"{JOBS} jobs x {TARGETS} targets, results of 1 KiB, medians of {rounds}"
    machine = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    head = "".join(f" {name:>9} {'÷':>5}" for name in COLUMNS)
    return "\n".join(
        [
            f"{work}; targets/s, and the ratio to the floor of the same round",
            f"{machine}, {platform.machine()}, {os.cpu_count()} cores",
            "",
            f"{'':28} {'sync':>4}{head}",
            *map(_line, rows),
        ]
    )


def _line(row: dict[str, object]) -> str:
    workers = row["workers"]
    who = f"batchmill, {workers} workers" if workers else "floor, sqlite3"
    name = f"{who}, {str(row['durability']).upper()}"
    figures = "".join(f" {row[each]:9,.0f} {row[f'{each}_ratio']:5.2f}" for each in COLUMNS)
    return f"{name:28} {row['synchronous']:>4}{figures}"


if __name__ == "__main__":
    sys.exit(main())
