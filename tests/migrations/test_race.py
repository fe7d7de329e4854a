"""Replicas that start together, and all upgrade (cases.md 14 and 18)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from tests.migrations import support

THREADS = 16
PROCESSES = 5
ROUNDS = pytest.mark.parametrize(
    "rounds", [pytest.param(3, id="short"), pytest.param(20, id="soak", marks=pytest.mark.soak)]
)
ENGINES = pytest.mark.parametrize("kind", ["ours", "plain"])
LONG = pytest.mark.timeout(600)

CHILD = """
import sys
from pathlib import Path
from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from tests.migrations.support import plain_engine

kind, path = sys.argv[1:]
engine = plain_engine(Path(path)) if kind == "plain" else create_store_engine(f"sqlite:///{path}")
print("ready", flush=True)
sys.stdin.readline()
migrate.upgrade(engine)
migrate.verify(engine)
engine.dispose()
"""


def make_engine(kind: str, path: Path) -> Engine:
    return (
        support.plain_engine(path) if kind == "plain" else create_store_engine(f"sqlite:///{path}")
    )


def assert_migrated_once(path: Path) -> None:
    engine = support.plain_engine(path)
    with engine.connect() as connection:
        versions = connection.execute(text(f"SELECT * FROM {migrate.VERSION_TABLE}")).all()
        totals = connection.execute(text("SELECT shard FROM batch_total")).scalars().all()
    schema = support.schema_of(engine)
    engine.dispose()
    assert [tuple(row) for row in versions] == [(support.HEAD,)]
    assert sorted(totals) == list(range(-2, 8))
    assert schema == support.kept_schema()


def from_a_barrier(work: Callable[[], None]) -> list[BaseException]:
    """Call ``work`` in 16 threads at once; the exceptions that came out of it."""
    barrier = threading.Barrier(THREADS)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            barrier.wait(30)
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def upgrade_with_own_engine(kind: str, path: Path) -> None:
    engine = make_engine(kind, path)
    try:
        migrate.upgrade(engine)
        migrate.verify(engine)
    finally:
        engine.dispose()


def upgrade_next(waiting: list[Path]) -> None:
    upgrade_with_own_engine("ours", waiting.pop())


@LONG
@ROUNDS
@ENGINES
def test_threads_with_an_engine_each(kind: str, rounds: int, tmp_path: Path) -> None:
    """16 threads, each with its own engine, upgrade one empty database (cases.md 18)."""
    for number in range(rounds):
        path = tmp_path / f"{number}.db"
        assert from_a_barrier(partial(upgrade_with_own_engine, kind, path)) == []
        assert_migrated_once(path)


@LONG
@ROUNDS
@ENGINES
def test_threads_with_one_engine(kind: str, rounds: int, tmp_path: Path) -> None:
    """16 threads that share an engine upgrade one empty database: all succeed."""
    for number in range(rounds):
        path = tmp_path / f"{number}.db"
        engine = make_engine(kind, path)
        assert from_a_barrier(partial(migrate.upgrade, engine)) == []
        engine.dispose()
        assert_migrated_once(path)


@LONG
@ROUNDS
def test_threads_with_a_database_each(rounds: int, tmp_path: Path) -> None:
    """16 threads upgrade a database each: no database's lock keeps them apart, ours does."""
    for number in range(rounds):
        paths = [tmp_path / f"{number}-{thread}.db" for thread in range(THREADS)]
        assert from_a_barrier(partial(upgrade_next, list(paths))) == []
        for path in paths:
            assert_migrated_once(path)


@LONG
@ROUNDS
@ENGINES
def test_processes(kind: str, rounds: int, tmp_path: Path) -> None:
    """5 processes upgrade one empty database from a barrier: all succeed (cases.md 18)."""
    for number in range(rounds):
        path = tmp_path / f"{number}.db"
        children = [start_child(kind, path) for _ in range(PROCESSES)]
        outputs = release(children)
        assert [(child.returncode, err) for child, err in zip(children, outputs, strict=True)] == [
            (0, "")
        ] * PROCESSES
        assert_migrated_once(path)


def start_child(kind: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD, kind, str(path)],
        cwd=support.TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def release(children: list[subprocess.Popen[str]]) -> list[str]:
    """Let all go once the last is ready; what each wrote to stderr."""
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    return [child.communicate(timeout=120)[1] for child in children]
