"""Draw a run of the chaos that ``tests/hosts`` puts a database's runners through.

``python -m benchmarks.chaos`` takes some minutes, prints nothing but how far it is, and writes
``docs/chaos.json`` and ``docs/chaos.svg``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.hosts.chaos import FETCH, RUNNERS, WORKERS, Plan, Story
from tests.hosts.test_chaos import go_through

DOCS = Path(__file__).parents[1] / "docs"
DATA, PICTURE = DOCS / "chaos.json", DOCS / "chaos.svg"
KINDS = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}

WIDTH, HEIGHT, LEFT, TOP, GAP = 760, 170, 48, 52, 62
STYLE = """
    text { font: 12px system-ui, sans-serif; fill: #333 }
    .small { font-size: 10px; fill: #666 }
    .rate { fill: none; stroke: #1f6feb; stroke-width: 1.5 }
    .calm { stroke: #888; stroke-dasharray: 4 3 }
    .axis { stroke: #bbb }
    .kill { stroke: #d1242f }
    .stop { stroke: #bf8700 }
    .restart { fill: #d1242f; fill-opacity: .25 }
"""


def run(kind: str) -> dict[str, Any]:
    """One run on a server of its own, as what is kept of it; it must keep what is promised."""
    with tempfile.TemporaryDirectory() as folder:
        return kept(go_through(kind, Path(folder), Plan()))


def kept(story: Story) -> dict[str, Any]:
    """The rate of each second, and the events."""
    seconds = int(story.ended) + 1
    return {
        "database": story.kind,
        "undisturbed": round(story.undisturbed, 1),
        "targets stored a second": [int(story.rate(second)) for second in range(seconds)],
        "events": [[round(e.at, 1), e.what, e.whom, round(e.lasts, 1)] for e in story.events],
        "back at 90 % after": [round(story.back_after(event), 1) for event in story.hurt()],
        "last second": round(story.events[-1].at, 1),
    }


def panel(data: dict[str, Any], top: float) -> str:
    """One database's rate over time."""
    rates = data["targets stored a second"][: int(data["last second"]) + 8]
    across, most = (WIDTH - LEFT - 12) / len(rates), max(rates) * 1.1

    def x(second: float) -> float:
        return round(LEFT + second * across, 1)

    def y(rate: float) -> float:
        return round(top + HEIGHT * (1 - rate / most), 1)

    points = " ".join(f"{x(second + 0.5)},{y(rate)}" for second, rate in enumerate(rates))
    worst = max(data["back at 90 % after"])
    title = (
        f"{KINDS[data['database']]}: {data['undisturbed']:.0f} targets/s undisturbed; after each "
        f"kill and restart back at 90 % within {worst:.1f} s of a server"
    )
    parts = [f'<text x="{LEFT}" y="{top - 10}">{title}</text>', *_events(data, x, top)]
    for rate in (0, data["undisturbed"]):
        kind = "calm" if rate else "axis"
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{x(len(rates))}" {_at(y(rate))}/>')
        parts.append(f'<text class="small" x="{LEFT - 26}" y="{y(rate) + 3}">{rate:.0f}</text>')
    parts += [
        f'<text class="small" x="{x(second)}" y="{top + HEIGHT + 14}">{second} s</text>'
        for second in range(0, len(rates), 10)
    ]
    return "\n".join([*parts, f'<polyline class="rate" points="{points}"/>'])


def _at(height: float) -> str:
    return f'y1="{height}" y2="{height}"'


def _events(data: dict[str, Any], x: Any, top: float) -> list[str]:
    marks = []
    for at, what, _, lasts in data["events"]:
        if what == "restart":
            width = x(at + lasts) - x(at)
            where = f'x="{x(at)}" y="{top}" width="{width:.1f}" height="{HEIGHT}"'
            marks.append(f'<rect class="restart" {where}/>')
        else:
            where = f'x1="{x(at)}" x2="{x(at)}" y1="{top + HEIGHT - 9}" y2="{top + HEIGHT}"'
            marks.append(f'<line class="{what}" {where}/>')
    return marks


def picture(runs: list[dict[str, Any]]) -> str:
    """The whole drawing."""
    height = TOP + len(runs) * (HEIGHT + GAP)
    flying = RUNNERS * WORKERS
    legend = (
        (
            f"{RUNNERS} runners with {WORKERS} workers each; fetches of {FETCH} s, so "
            f"{flying / FETCH:.0f} targets/s are the most there can be."
        ),
        (
            "Each second a runner is killed with -9 (red) or stopped for a while (yellow). Shaded: "
            "the server is killed and starts again; while there is none, no time counts."
        ),
    )
    panels = [panel(data, TOP + 18 + n * (HEIGHT + GAP)) for n, data in enumerate(runs)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *(
                f'<text class="small" x="{LEFT}" y="{16 + 14 * n}">{line}</text>'
                for n, line in enumerate(legend)
            ),
            *panels,
            "</svg>\n",
        ]
    )


def main() -> None:
    """Run, keep, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="only draw what docs/chaos.json has")
    if not parser.parse_args().draw:
        runs = []
        for kind, name in KINDS.items():
            print(f"a minute of chaos on {name}", file=sys.stderr)
            runs.append(run(kind))
        lines = ",\n".join(json.dumps(data) for data in runs)
        DATA.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    PICTURE.write_text(picture(json.loads(DATA.read_text())), encoding="utf-8")


if __name__ == "__main__":
    main()
