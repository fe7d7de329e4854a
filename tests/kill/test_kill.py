"""kill -9 in the middle of a transaction, again and again, on one database."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from batchmill.runner import Runner
from tests.kill.board import Board, Place, code_of
from tests.kill.child import CONFIG, fetch
from tests.runner.helpers import User
from tests.store.support import finish
from tests.support.database import Database
from tests.support.invariants import broken
from tests.support.tables import print_later

TOP = Path(__file__).parents[2]
PATIENCE = 30.0
OLD = 40
"""Finished jobs whose lease ran out long ago, so that there is something to sweep."""
PLACES = (
    "begun",
    "after a read",
    "before batch_target",
    "after batch_target",
    "before batch_turn",
    "after batch_turn",
    "before batch_job",
    "after batch_job",
    "at the commit",
    "at the commit",
    "at the commit",
)
"""Where in an exchange the rounds aim, in turn: most often at the commit, where files change."""

Child = subprocess.Popen[str]


class Round:
    """Two children on one database, of which one is killed where it stands."""

    def __init__(self, database: Database, tmp_path: Path, number: int) -> None:
        folder = tmp_path / f"round-{number}"
        folder.mkdir()
        self.chance = random.Random(number)
        self.aim = PLACES[number % len(PLACES)]
        self.boards = [Board(folder / f"board-{n}", make=True) for n in range(2)]
        self.notes = [folder / f"notes-{n}" for n in range(2)]
        self.children = [self._start(database, folder, n, number) for n in range(2)]

    def _start(self, database: Database, folder: Path, which: int, number: int) -> Child:
        given = {
            "url": database.url,
            "board": str(folder / f"board-{which}"),
            "notes": str(self.notes[which]),
            "seed": number * 2 + which,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tests.kill.child", json.dumps(given)],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *, both: bool) -> Place:
        """Kill the first child that comes to the chosen place, maybe the other too.

        Where the kill fell.
        """
        for child in self.children:
            assert child.stdout.readline() == "ready\n"
        for child in self.children:
            child.stdin.write("\n")
            child.stdin.flush()
        self._let_them_work()
        which = self._wait_for_aim()
        victim, other = self.children[which], self.children[1 - which]
        spin(self.chance.choice([0.0, 0.0, 0.00005, 0.0002]))
        os.kill(victim.pid, signal.SIGKILL)
        assert victim.wait(PATIENCE) == -signal.SIGKILL
        if both:
            spin(self.chance.random() / 50)
            other.kill()
            other.wait(PATIENCE)
        else:
            other.communicate(timeout=PATIENCE)
            assert other.returncode == 0
        return self._fell(which)

    def _let_them_work(self) -> None:
        """Until each has had something acknowledged, and some more."""
        deadline = time.monotonic() + PATIENCE
        while not all(notes.exists() and notes.stat().st_size > 400 for notes in self.notes):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        spin(self.chance.random() / 20)

    def _wait_for_aim(self) -> int:
        deadline, code = time.monotonic() + PATIENCE, code_of("exchange", self.aim)
        one, two = self.boards
        while time.monotonic() < deadline:
            if one.shows(code):
                return 0
            if two.shows(code):
                return 1
        pytest.fail(f"no exchange was ever {self.aim}")

    def _fell(self, which: int) -> Place:
        """Where the kill fell: in a transaction that could write, if in one at all."""
        places = self.boards[which].places()
        return next((place for place in places if place.writing), Place("none", "outside", False))

    def acknowledged(self, kind: str) -> set[str]:
        """What was acknowledged to the children, by complete lines."""
        lines = "".join(notes.read_text() for notes in self.notes).split("\n")[:-1]
        return {line.split()[1] for line in lines if line.startswith(kind)}

    def close(self) -> None:
        """Leave no child and no memory behind; again does nothing."""
        children, self.children = self.children, []
        boards, self.boards = self.boards, []
        for child in children:
            if child.poll() is None:
                child.kill()
            child.wait(PATIENCE)
            child.stdin.close()
            child.stdout.close()
        for board in boards:
            board.close()


def spin(seconds: float) -> None:
    """Wait as exactly as can be."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


LONG = [pytest.mark.soak, pytest.mark.timeout(1500)]


@pytest.mark.parametrize(
    ("make_database", "rounds", "counted"),
    [
        pytest.param("sqlite", 5, 1, id="sqlite-short"),
        pytest.param("sqlite", 100, 50, id="sqlite-full", marks=LONG),
        pytest.param("postgresql", 3, 1, id="postgresql-short"),
        pytest.param("postgresql", 33, 16, id="postgresql-full", marks=LONG),
        pytest.param("mariadb", 3, 1, id="mariadb-short"),
        pytest.param("mariadb", 33, 16, id="mariadb-full", marks=LONG),
    ],
    indirect=["make_database"],
)
def test_kill_in_the_middle_of_an_exchange(database, tmp_path, rounds, counted):
    """Whatever the instant: whole jobs, exact counters, each target stored once, all finished.

    A server finds out by itself that the process is gone.
    """
    database.log_finishes()
    fell: Counter[Place] = Counter()
    coming = Round(database, tmp_path, 0)
    try:
        for number in range(rounds):
            battle = coming
            add_old_jobs(database, number)
            fell[battle.run(both=number % 4 != 3)] += 1
            coming = Round(database, tmp_path, number + 1)  # its processes start meanwhile
            check_reopened(database, battle)
            battle.close()
            finish_all(database)
    finally:
        battle.close()
        coming.close()
    print_later(f"kill -9, {rounds} rounds, {database.kind}: where they fell", histogram(fell))
    assert sum(times for place, times in fell.items() if place.in_exchange) >= counted


def add_old_jobs(database: Database, number: int) -> None:
    """Something to sweep, a few more than the round before has swept."""
    store = database.store()
    for job in range(OLD if number == 0 else 5):
        finish(store, f"old-{number}-{job}", '"old"')


def check_reopened(database: Database, battle: Round) -> None:
    """Everything in the file is true, and all that was acknowledged is in it."""
    assert broken(database, logged=True) == []
    jobs = {row[0] for row in database.query("SELECT id FROM batch_job")}
    assert battle.acknowledged("job") <= jobs
    tokens = {row[0] for row in database.query("SELECT token FROM finish_log")}
    assert battle.acknowledged("token") <= tokens
    assert battle.acknowledged("token")


def finish_all(database: Database) -> None:
    """A new runner, long after, finishes every job; each target was stored once in all."""
    store = database.store()
    runner = Runner(
        store,
        fetch,
        CONFIG,
        resolve_caller=lambda name, _: User(name),
        clock=lambda: store.now() + 600,  # every hold has lapsed
    )
    with runner:
        runner.drain(PATIENCE)
    store.engine.dispose()
    assert broken(database, logged=True) == []
    assert database.query("SELECT count(*) FROM batch_turn") == [(0,)]
    ended = database.query("SELECT DISTINCT status FROM batch_job WHERE id NOT LIKE 'old-%'")
    assert ended == [("partial",)]
    for url, status, result in database.query(
        "SELECT url, status, result FROM batch_target WHERE job_id NOT LIKE 'old-%'"
    ):
        fails = url.endswith("/2")
        assert (status, result) == (
            ("failed", None) if fails else ("done", f'{{"content":"{url}"}}')
        )
    unlogged = database.query(
        "SELECT count(*) FROM batch_target AS t WHERE job_id NOT LIKE 'old-%' AND NOT EXISTS ("
        "SELECT 1 FROM finish_log AS f WHERE f.job_id = t.job_id AND f.idx = t.idx)"
    )
    assert unlogged == [(0,)]


def histogram(fell: Counter[Place]) -> list[str]:
    """A line for each place, those that count first."""
    lines = []
    for place, times in sorted(fell.items(), key=lambda item: (not item[0].in_exchange, -item[1])):
        where = f"{place.call}, {place.step}" if place.writing else "outside any transaction"
        mark = "*" if place.in_exchange else " "
        lines.append(f"{mark} {where:<36} {times:>4} {'#' * times}")
    inside = sum(times for place, times in fell.items() if place.in_exchange)
    lines.append(f"* between a claim, or the begin of its transaction, and its commit: {inside}")
    return lines
