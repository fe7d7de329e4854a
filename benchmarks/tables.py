"""The report as tables: for people in a terminal, and for the docs in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import GOALS, TITLES, Goal, is_longest
from benchmarks.parts.growth import key
from benchmarks.report import COLUMNS, Report, Subject

Row = tuple[str, ...]


def goal_rows(report: Report) -> list[Row]:
    """Each goal: what was measured, what is required and aimed at, and whether it is reached.

    A part that wasn't asked for has no rows.
    """
    short = report.sizes.short
    rows: list[Row] = [("", "measured", *(["no accident"] if short else ["required", "aim"]), "")]
    for goal in GOALS:
        value = report.figure(goal.key)
        verdict: str = report.verdict(goal)
        if value is None:
            if goal.part not in report.missing:
                continue
            verdict = f"not measured: {report.missing[goal.part]}"
        limits = [goal.bound] if short else [goal.required, goal.aim]
        measured = f"{_figure(goal, value)}{_times(report, goal.key)}"
        title = goal.titled(report.sizes)
        rows.append((title, measured, *(_limit(goal, limit) for limit in limits), verdict))
    return rows


def figure_rows(report: Report) -> list[Row]:
    """Every subject: targets a second, its ratios to the floor of its round, and its latency."""
    head = [part for column in COLUMNS for part in (column, "÷")]
    rows: list[Row] = [("", *head, "idle p50")]
    rows += [_subject(report, subject) for subject in report.subjects]
    rows += [
        (name, *[""] * len(head), f"not measured: {why}")
        for name, why in report.missing.items()
        if name not in {goal.part for goal in GOALS}  # those say so in the other table
    ]
    return rows


def growth_rows(report: Report) -> list[Row]:
    """The cost of submitting and of draining one target, by the number of kept jobs."""
    sizes = report.sizes.kept
    rows: list[Row] = [("µs a target", *(f"{size:,} kept" for size in sizes))]
    for name in ("sqlite-normal", "postgresql"):
        for column in ("submit", "drain"):
            costs = [report.figure(key(column, name, size)) for size in sizes]
            if any(cost is not None for cost in costs):
                shown = ("" if cost is None else f"{cost:,.0f}" for cost in costs)
                rows.append((f"{column}, {TITLES[name]}", *shown))
    return rows


def extra_rows(report: Report) -> list[Row]:
    """Whatever else was measured, for who wants to know why."""
    shown = {goal.key for goal in GOALS} | {
        key(column, name, size)
        for column in ("submit", "drain")
        for name in TITLES
        for size in report.sizes.kept
    }
    return [
        (name, f"{report.figure(name):,.2f}{_times(report, name)}")
        for name in report.values
        if name not in shown and not name.startswith("idle ")
    ]


def as_text(rows: Sequence[Row]) -> str:
    """Columns in line: the first to the left, the last as it is, the others to the right."""
    widths = [max(len(row[n]) for row in rows if n < len(row)) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *middle, last = row
        cells = [
            first.ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(middle, widths[1:], strict=False)),
            last,
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_markdown(rows: Sequence[Row]) -> str:
    """A table whose middle columns are aligned to the right."""
    width = len(rows[0])
    rule = ["---", *["---:"] * (width - 2), "---"] if width > 2 else ["---", "---:"]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def machine_line(report: Report) -> str:
    """What it was measured on, in one sentence."""
    return ", ".join(
        value if name in ("date", "processor", "disk", "system") else f"{name} {value}"
        for name, value in report.machine.items()
    )


def work_line(report: Report) -> str:
    """What was measured."""
    shape = report.sizes.shape
    return (
        f"{shape.jobs} jobs × {shape.targets} targets, no-op work, results of 1 KiB; medians of "
        f"{report.rounds} where the row names no other number; "
        "÷ is the ratio to the floor that ran just before"
        f"{'; the short form' if report.sizes.short else ''}"
    )


def settings_lines(report: Report) -> list[str]:
    """How each server and each peer was set, once each."""
    found: dict[str, None] = {}
    for subject in report.subjects:
        if subject.settings and subject.name != "batchmill" and "a commit" not in subject.name:
            who = TITLES[subject.database] if subject.name == "floor" else subject.name
            found[f"{who}: {subject.settings}"] = None
    return list(found)


def _subject(report: Report, subject: Subject) -> Row:
    workers = f", {subject.workers} workers" if subject.workers else ""
    cells = []
    for column in COLUMNS:
        value, ratio = subject.median(column), subject.ratio(column)
        cells += ["" if value is None else f"{value:,.0f}", "" if ratio is None else f"{ratio:.2f}"]
    name = f"{subject.name}{workers.replace('1 workers', '1 worker')}, {TITLES[subject.database]}"
    if len(subject.rounds) != report.rounds:
        name += f" (of {len(subject.rounds)})"
    return (name, *cells, _latency(report, subject))


def _latency(report: Report, subject: Subject) -> str:
    keys = {
        "floor": f"idle floor, {subject.database}",
        "batchmill": f"idle-{subject.database}" if subject.workers == 1 else "",
    }
    value = report.figure(keys.get(subject.name, f"idle {subject.name}"))
    return "" if value is None else f"{value:.1f} ms"


def _times(report: Report, key: str) -> str:
    """The number of values, where it isn't that of the rounds: " (of 3)"; "" if there are none."""
    count = len(report.values.get(key, ()))
    if is_longest(key) and count:
        return f" (longest of {count})"
    return "" if count in (0, report.rounds) else f" (of {count})"


def _figure(goal: Goal, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if not goal.unit else f"{value:,.1f} {goal.unit}"


def _limit(goal: Goal, limit: float | None) -> str:
    if limit is None:
        return ""
    return f"{'≤' if goal.at_most else '≥'} {limit:g} {goal.unit}".rstrip()
