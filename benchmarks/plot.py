"""Line charts as SVG, drawn by hand: two of them don't need a library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Final

from benchmarks.goals import TITLES
from benchmarks.parts.growth import key
from benchmarks.report import Report

WIDTH: Final = 640
HEIGHT: Final = 360
LEFT, RIGHT, TOP, BOTTOM = 64, 40, 44, 52
COLOURS: Final = ("#1f6feb", "#8250df", "#1a7f37", "#bc4c00")
MARKS: Final = 5

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over a logarithmic x axis; y begins at 0. ``level`` is drawn across, dashed."""

    title: str
    across: str
    up: str
    lines: dict[str, Points]
    level: float | None = None


def drain_chart(report: Report) -> Chart:
    """Drain ÷ floor against workers, a line for each database."""
    lines: dict[str, Points] = {}
    for subject in report.subjects:
        ratio = subject.ratio("drain")
        if subject.name == "batchmill" and ratio is not None:
            lines.setdefault(TITLES[subject.database], []).append((subject.workers, ratio))
    return Chart("Drain beside the floor", "workers", "drain ÷ floor", lines, level=1.0)


def growth_chart(report: Report) -> Chart:
    """The cost of one target against kept jobs, in parts of that beside the fewest."""
    lines: dict[str, Points] = {}
    for name in ("sqlite-normal", "postgresql"):
        for column in ("submit", "drain"):
            costs = [(size, report.figure(key(column, name, size))) for size in report.sizes.kept]
            found = [(float(size), cost) for size, cost in costs if cost is not None]
            if len(found) > 1:
                least = found[0][1]
                lines[f"{column}, {TITLES[name]}"] = [(size, cost / least) for size, cost in found]
    return Chart(
        "The cost of one target beside ever more kept jobs",
        "kept jobs (× 2 targets)",
        f"cost ÷ cost beside {report.sizes.fewest:,}",
        lines,
        level=1.0,
    )


def draw(chart: Chart) -> str:
    """The SVG; raises ``ValueError`` where there is nothing to draw."""
    if not chart.lines:
        raise ValueError(f"{chart.title}: nothing was measured")
    across = sorted({x for line in chart.lines.values() for x, _ in line})
    highest = max(y for line in chart.lines.values() for _, y in line)
    top = _round_up(max(highest, chart.level or 0.0))
    scale = _Scale(across[0], across[-1], top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f'aria-label="{escape(chart.title)}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(WIDTH / 2, 20, chart.title, size=15),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, chart.across),
        f'<g transform="rotate(-90 14 {HEIGHT / 2})">{_text(14, HEIGHT / 2, chart.up)}</g>',
        *_axes(scale, across, top),
    ]
    if chart.level is not None:
        parts.append(_rule(scale.y(chart.level), "#57606a", dashed=True))
    for number, (name, points) in enumerate(chart.lines.items()):
        parts += _line(scale, COLOURS[number % len(COLOURS)], name, sorted(points), number)
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Scale:
    least: float
    most: float
    top: float

    def x(self, value: float) -> float:
        """A value's place from the left; in the middle where there is but one."""
        width = WIDTH - LEFT - RIGHT
        if self.most == self.least:
            return LEFT + width / 2
        part = math.log(value / self.least) / math.log(self.most / self.least)
        return round(LEFT + part * width, 1)

    def y(self, value: float) -> float:
        """A value's place from the top."""
        return round(HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM), 1)


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten, so that the marks have short names."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * 1.0001)


def _axes(scale: _Scale, across: list[float], top: float) -> list[str]:
    parts = []
    for number in range(MARKS + 1):
        value = top * number / MARKS
        parts += [
            _rule(scale.y(value), "#d0d7de"),
            _text(LEFT - 8, scale.y(value) + 4, f"{value:g}", anchor="end"),
        ]
    bottom = HEIGHT - BOTTOM
    parts += [_text(scale.x(value), bottom + 18, f"{value:,.0f}") for value in across]
    return parts


def _line(scale: _Scale, colour: str, name: str, points: Points, number: int) -> list[str]:
    places = [(scale.x(x), scale.y(y)) for x, y in points]
    path = " ".join(f"{x},{y}" for x, y in places)
    down = TOP + 3 + number * 18
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places),
        f'<rect x="{LEFT + 12}" y="{down}" width="12" height="3" fill="{colour}"/>',
        _text(LEFT + 30, down + 6, name, anchor="start"),
    ]


def _rule(y: float, colour: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="{colour}"{dashes}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 12) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="#24292f">'
        f"{escape(text)}</text>"
    )
