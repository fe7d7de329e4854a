"""Puts a report's tables and plots into the docs, so that nobody copies figures by hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks import model, plot, tables
from benchmarks.child import TOP
from benchmarks.goals import GOALS
from benchmarks.report import Report

PAGE = TOP / "docs" / "benchmark.md"
SECTIONS = ("goals", "figures", "growth", "model", "extras")
"""What stands on the page between ``<!-- name -->`` and ``<!-- /name -->``."""
PLOTS = {"benchmark-drain.svg": plot.drain_chart, "benchmark-growth.svg": plot.growth_chart}


class Refused(Exception):
    """The report, or the page, is not one for which the tables may be replaced."""


class DocsChanged(Refused):
    """The page has no longer the markers that the tables go between."""


class NotWhole(Refused):
    """The report is of the short form, or of some parts only: its tables would lack rows."""


def write(report: Report, page: Path = PAGE) -> list[Path]:
    """Replace what stands between the page's markers, draw the plots beside it; what was written.

    A plot of which nothing was measured is left as it is. Raises ``DocsChanged``, ``NotWhole``.
    """
    _check_whole(report)
    text = page.read_text(encoding="utf-8")
    for name, inner in _sections(report).items():
        text = replace(text, name, inner)
    page.write_text(text, encoding="utf-8")
    written = [page]
    for name, chart in PLOTS.items():
        drawn = chart(report)
        if drawn.lines:
            (page.parent / name).write_text(plot.draw(drawn), encoding="utf-8")
            written.append(page.parent / name)
    return written


def _check_whole(report: Report) -> None:
    if report.sizes.short:
        raise NotWhole("the figures of the short form don't belong in the docs")
    lacking = dict.fromkeys(
        goal.part
        for goal in GOALS
        if report.figure(goal.key) is None and goal.part not in report.missing
    )
    if lacking:
        raise NotWhole(f"the docs would lack what was not measured: {', '.join(lacking)}")


def replace(text: str, name: str, inner: str) -> str:
    """The text with something else between ``<!-- name -->`` and ``<!-- /name -->``."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise DocsChanged(f"the page needs {begin} and, after it, {end}, once each")
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{inner}\n{end}{rest.partition(end)[2]}"


def _sections(report: Report) -> dict[str, str]:
    machine = f"Measured on {tables.machine_line(report)}.\n{tables.work_line(report)}."
    settings = [f"- {line}" for line in tables.settings_lines(report)]
    return {
        "goals": f"{machine}\n\n{tables.as_markdown(tables.goal_rows(report))}",
        "figures": "\n\n".join(
            [
                tables.as_markdown(tables.figure_rows(report)),
                *(["\n".join(settings)] * bool(settings)),
            ]
        ),
        "growth": tables.as_markdown(tables.growth_rows(report)),
        "model": tables.as_markdown(model.rows(report)),
        "extras": tables.as_markdown([("", "median"), *tables.extra_rows(report)]),
    }
