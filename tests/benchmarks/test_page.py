"""docs/benchmark.md: its program runs, its calculation comes out, its options are there."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import docs, model
from benchmarks.arguments import parse

pytestmark = pytest.mark.checkout

TEXT = docs.PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_callers_are_spread_over_databases(tmp_path: Path) -> None:
    """The page's program runs, each caller reads its own job, and more than one file has some."""
    (program,) = [text for kind, text in BLOCKS if kind == "python"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{name} ['https://example.org/ for {name}']" for name in ("ada", "bob", "eve")
    ]
    jobs = [_jobs(path) for path in tmp_path.glob("shard-*.db")]
    assert sum(jobs) == 3
    assert sum(count > 0 for count in jobs) > 1


def _jobs(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM batch_job")
    return int(count)


def test_one_more_database_moves_its_share_of_callers() -> None:
    """With a fourth URL about a quarter of the callers move, all of them to it."""
    (program,) = [text for kind, text in BLOCKS if kind == "python"]
    names: dict[str, object] = {}
    exec(program.partition("runners = []")[0], names)  # the page's own functions
    shard_of = names["shard_of"]
    callers = [f"caller-{number}" for number in range(2000)]
    before = [shard_of(name) for name in callers]
    names["URLS"] = [*names["URLS"], "sqlite:///shard-3.db"]
    after = [shard_of(name) for name in callers]
    moved = {now for was, now in zip(before, after, strict=True) if was != now}
    share = sum(was != now for was, now in zip(before, after, strict=True)) / len(callers)
    assert moved == {3}
    assert 0.2 < share < 0.3


def test_the_example_comes_out() -> None:
    """The worked example of the page is what its formulas give."""
    daily, days, databases = 40_000_000, 2, 2
    model_bytes = daily * days * (4096 + 235 + 660 / 32) * 1.4
    assert f"{daily / 86_400 * 3:,.0f} a second" in TEXT
    assert f"= {model_bytes / 1e9:.0f} GB, or {model_bytes / databases / 1e9:.0f} GB" in TEXT
    assert f"= {daily * days / databases * 4096 / 1e9:.0f} GB" in TEXT
    assert model.stored_bytes("postgresql", daily * days, 4096) == pytest.approx(model_bytes)


def test_the_commands_of_the_page_are_there() -> None:
    """Each line's options are taken by the command, but for the file that they read."""
    (commands,) = [text for kind, text in BLOCKS if kind == "text" and "-m benchmarks" in text]
    lines = [re.split(r"\s{2,}", line)[0] for line in commands.splitlines()]
    assert len(lines) == 5
    for line in lines:
        assert line.startswith("python -m benchmarks")
        given = line.split()[3:]
        if "--from" not in given:
            parse(given)
