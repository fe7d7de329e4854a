"""``python -m benchmarks``: measure, print the table, write JSON and the docs."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import arguments, docs, report, runs, tables
from benchmarks.child import TOP


def main() -> int:
    """1 where a measurement failed, or a short run found less than half of what is required."""
    args = arguments.parse()
    if args.saved:
        found = _read(args.saved)
    else:
        found = runs.run(
            args.only, rounds=args.rounds, short=args.short, folder=args.folder, json=args.json
        )
    _print(found)
    if args.write_docs:
        try:
            written = docs.write(found)
        except docs.Refused as error:
            sys.exit(f"error: {error}")
        for path in written:
            print(f"wrote {path.relative_to(TOP)}")
    return _failed(found)


def _read(paths: list[Path]) -> report.Report:
    try:
        first, *others = map(report.from_json, paths)
        for other in others:
            first.merge(other)
    except ValueError as error:
        sys.exit(f"error: {error}")
    return first


def _print(found: report.Report) -> None:
    print(f"{tables.machine_line(found)}\n{tables.work_line(found)}\n")
    for rows in (
        tables.goal_rows(found),
        tables.figure_rows(found),
        tables.growth_rows(found),
        tables.extra_rows(found),
    ):
        if len(rows) > 1:
            print(f"{tables.as_text(rows)}\n")
    for line in tables.settings_lines(found):
        print(line)


def _failed(found: report.Report) -> int:
    for name, why in found.missing.items():
        print(f"not measured: {name}: {why}", file=sys.stderr)
    accidents = found.accidents() if found.sizes.short else []
    for goal in accidents:
        value = found.figure(goal.key)
        print(f"an accident: {goal.titled(found.sizes)}: {value:.2f}", file=sys.stderr)
    return 1 if accidents or found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
