from __future__ import annotations

import io
import json
import re
import sqlite3
import xml.etree.ElementTree as ET
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from batchmill.cli.demo.command import Show, play
from batchmill.cli.interrupts import Interrupts
from batchmill.cli.values import bytes_text

LETTERS = {"ada": "a", "ben": "b", "cleo": "c"}
SIGNS = {"done": "■", "failed": "✗", "pending": "·"}


@dataclass
class Snapshot:
    """What the database held when a part of the demo had ended, read with raw SQL."""

    jobs: dict[str, dict[str, Any]]
    targets: dict[str, list[dict[str, Any]]]

    @property
    def nbytes(self) -> int:
        return sum(
            len((row["result"] or "").encode()) for rows in self.targets.values() for row in rows
        )


def snapshot(path: str) -> Snapshot:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        jobs = {row["caller"]: dict(row) for row in connection.execute("SELECT * FROM batch_job")}
        select = "SELECT * FROM batch_target WHERE job_id = ? ORDER BY idx"
        targets = {
            caller: [dict(row) for row in connection.execute(select, [job["id"]])]
            for caller, job in jobs.items()
        }
    return Snapshot(jobs, targets)


@dataclass
class Played:
    text: str
    parts: dict[str, Snapshot]

    @property
    def lines(self) -> list[str]:
        """The lines, without frames, every run of blanks one blank."""
        return [" ".join(re.sub("[╭╮╰╯│─]", " ", line).split()) for line in self.text.splitlines()]


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Played:
    """The demo, played once, fast, where nobody looks, on a file that it keeps."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    parts: dict[str, Snapshot] = {}
    out = io.StringIO()
    with Interrupts() as interrupts:
        finished = play(
            f"sqlite:///{path}",
            Show(Console(file=out, width=100)),
            interrupts,
            pace=0.05,
            svg=path.with_suffix(".svg"),
            checkpoint=lambda name: parts.update({name: snapshot(str(path))}),
        )
    assert finished
    return Played(out.getvalue(), parts)


def _job_lines(drained: Snapshot) -> list[str]:
    """The rows of the screen's jobs, as the rows of the database have them."""
    lines = []
    for caller, job in drained.jobs.items():
        rows = drained.targets[caller]
        strip = " ".join(SIGNS[row["status"]] for row in rows)
        done = sum(row["status"] in {"done", "failed"} for row in rows)
        stored = bytes_text(sum(len((row["result"] or "").encode()) for row in rows))
        lines.append(f"{caller} {job['status']} {strip} {done}/{len(rows)} {stored}")
    done = sum(job["targets_done"] for job in drained.jobs.values())
    total = sum(job["targets_total"] for job in drained.jobs.values())
    return [*lines, f"all {done}/{total} {bytes_text(drained.nbytes)}"]


def _total_lines(drained: Snapshot) -> list[str]:
    lines, every = [], Counter[str]()
    for caller, job in drained.jobs.items():
        counts = Counter(row["status"] for row in drained.targets[caller])
        every += counts
        lines.append(f"{caller} {job['status']} {_three(counts)} {job['nbytes']:,}")
    return [*lines, f"all {_three(every)} {drained.nbytes:,}"]


def _three(counts: Counter[str]) -> str:
    return " ".join(str(counts[status]) for status in ("done", "failed", "pending"))


def _event_lines(drained: Snapshot) -> list[str]:
    """What may be told of what happened; a row of the database stands behind each."""
    lines = []
    for caller, job in drained.jobs.items():
        rows = drained.targets[caller]
        lines += [f"{caller} submits {len(rows)} targets: job {job['id']}"]
        lines += [f"{caller} submits the same again: job {job['id']} answers"]
        lines += [f"{caller} target {r['idx']} fails: {r['error']}" for r in rows if r["error"]]
        busy = "HTTP 503 Service Unavailable; it goes back and is tried again"
        lines += [f"{caller} target {r['idx']}: {busy}" for r in rows if r["attempt"] > 1]
    return lines


def _removal_lines(parts: dict[str, Snapshot]) -> list[str]:
    drained, evicted, swept = (parts[name] for name in ("drained", "evicted", "swept"))
    gone = [len(drained.jobs) - len(evicted.jobs), len(evicted.jobs) - len(swept.jobs)]
    assert gone == [1, 1]
    [first], [second] = drained.jobs.keys() - evicted.jobs, evicted.jobs.keys() - swept.jobs
    budget = (
        f"A budget of {drained.nbytes - 1:,} bytes evicts 1 job ({first}'s, longest unused): "
        f"results go from {drained.nbytes:,} to {evicted.nbytes:,} bytes."
    )
    day = (
        f"It removes 1 job ({second}'s, unused for a day): "
        f"results go from {evicted.nbytes:,} to {swept.nbytes:,} bytes."
    )
    return [budget, day]


def _turns_line(played: Played) -> str:
    return next(line for line in played.lines if line.startswith("a0 b0 c0"))


def _is_result_row(line: str, rows: list[dict[str, Any]]) -> bool:
    """True for a row of Ada's results that is what the database has at its index."""
    found = re.match(r"(\d) (done|failed) (\S+) (.*)", line)
    if found is None:
        return False
    row = rows[int(found[1])]
    result = json.loads(row["result"]) if row["result"] else None
    start = f"{bytes_text(len(row['result'].encode()))} {row['attempt']} " if result else ""
    rest = found[4].removeprefix(start).rstrip("…")
    said = " ".join(result["content"].split()) if result else f"{row['error']} ({row['hint']})"
    path = row["url"].split("/", 3)[3]
    return (
        found[4].startswith(start)
        and (found[2], found[3]) == (row["status"], path)
        and said.startswith(rest)
    )


def test_every_figure_comes_from_the_database(played):
    """Each line with a figure in it is recomputed from the rows, with raw SQL."""
    drained = played.parts["drained"]
    explained = {
        *_job_lines(drained),
        *_total_lines(drained),
        *_event_lines(drained),
        *_removal_lines(played.parts),
        _turns_line(played),
    }
    text = [
        line.replace(": ", " ", 1) if re.match("(ada|ben|cleo): ", line) else line
        for line in _joined(played)
    ]
    unexplained = [
        line
        for line in text
        if re.search(r"\d", line)
        and line not in explained
        and not _is_result_row(line, drained.targets["ada"])
    ]
    assert unexplained == []
    assert {*_job_lines(drained), *_total_lines(drained)} <= set(text)
    assert set(_removal_lines(played.parts)) <= set(text)


def _joined(played: Played) -> list[str]:
    """The lines, a wrapped sentence put together again."""
    lines: list[str] = []
    for line in played.lines:
        if (
            lines
            and lines[-1].startswith(("A budget", "It removes"))
            and not lines[-1].endswith(".")
        ):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


def test_the_results_are_all_there_in_order(played):
    """Ada's results are listed in the order of her list, none left out."""
    rows = played.parts["drained"].targets["ada"]
    shown = [line for line in played.lines if _is_result_row(line, rows)]
    assert [int(line[0]) for line in shown] == [row["idx"] for row in rows]


def test_the_turns_are_the_starts_that_the_database_counted(played):
    """The row of turns has each start once, in the order that the stored results tell."""
    drained = played.parts["drained"]
    turns = [turn.rstrip("↻") for turn in _turns_line(played).split()]
    started = Counter(
        {
            f"{LETTERS[caller]}{row['idx']}": row["attempt"]
            for caller, rows in drained.targets.items()
            for row in rows
        }
    )
    assert Counter(turns) == +started
    for caller, rows in drained.targets.items():
        for row in rows:
            if row["result"]:
                turn = json.loads(row["result"])["meta"]["turn"]
                assert turns[turn - 1] == f"{LETTERS[caller]}{row['idx']}"


def test_the_story_has_all_that_it_promises(played):
    """A retry, a 404, a server that breaks off, a cancel, a replay, an eviction and a sweep."""
    drained = played.parts["drained"]
    assert [job["status"] for job in drained.jobs.values()] == ["partial", "partial", "cancelled"]
    rows = [row for rows in drained.targets.values() for row in rows]
    assert max(row["attempt"] for row in rows) == 3
    errors = [row["error"] for row in rows if row["error"]]
    assert "HTTP 404 Not Found" in errors
    assert any("broke off" in error for error in errors)
    assert f"submits the same again: job {drained.jobs['ada']['id']} answers" in played.text
    assert len(drained.jobs) == 3
    assert list(played.parts["swept"].jobs) == ["ada"]


def test_nothing_moves_the_cursor_where_nobody_looks(played):
    """Without a terminal the output has no control characters, and fits its width."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", played.text)
    assert max(len(line) for line in played.text.splitlines()) <= 100


def test_the_picture_is_svg(played, tmp_path_factory):
    """--svg writes a picture that is well-formed and shows the three callers."""
    path = next(tmp_path_factory.getbasetemp().glob("demo*/demo.svg"))
    root = ET.parse(path).getroot()
    text = "".join(root.itertext())
    assert root.tag.endswith("svg")
    assert all(name in text for name in ("ada", "ben", "cleo", "↻"))


def test_the_command_keeps_the_file_that_it_was_given(invoke, db):
    """--db keeps the database, and the last line says how to look at it."""
    ran = invoke("demo", "--pace", "0", "--db", db)
    assert ran.exit_code == 0
    assert f"batchmill jobs --db {db}" in ran.stdout
    assert [job["caller"] for job in json.loads(invoke("jobs", "--db", db, "--json").stdout)] == [
        "ada"
    ]


def test_a_database_with_something_in_it_is_refused(invoke, db):
    """The demo removes jobs, so it takes no file that holds any table."""
    invoke("db", "upgrade", "--db", db)
    ran = invoke("demo", "--db", db)
    assert ran.exit_code == 2
    assert "holds tables already" in ran.stderr


def test_the_users_own_database_is_never_the_demos(invoke, db, monkeypatch, tmp_path):
    """BATCHMILL_DATABASE_URL doesn't count for the demo, whose file is gone afterwards."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("BATCHMILL_DATABASE_URL", db)
    assert invoke("demo", "--pace", "0").exit_code == 0
    assert not Path("t.db").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
