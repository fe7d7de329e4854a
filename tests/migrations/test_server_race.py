"""Replicas that start together, and all upgrade one database of a server's (cases.md 18)."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from batchmill.store import create_store_engine, migrate
from tests.migrations import support
from tests.migrations.places import SERVERS, MakePlace, Place
from tests.migrations.test_race import LONG, PROCESSES, from_a_barrier

ROUNDS = pytest.mark.parametrize(
    "rounds", [pytest.param(2, id="short"), pytest.param(20, id="soak", marks=pytest.mark.soak)]
)
on_servers = pytest.mark.parametrize("kind", SERVERS)

CHILD = """
import sys
from batchmill.store import create_store_engine, migrate

for line in sys.stdin:
    url, schema = eval(line)
    engine = create_store_engine(url)
    migrate.upgrade(engine, schema=schema)
    migrate.verify(engine, schema=schema)
    engine.dispose()
    print("done", flush=True)
"""


def upgrade_with_own_engine(place: Place) -> None:
    engine = create_store_engine(place.url)
    try:
        migrate.upgrade(engine, schema=place.schema)
        migrate.verify(engine, schema=place.schema)
    finally:
        engine.dispose()


def upgrade_next(waiting: list[Place]) -> None:
    upgrade_with_own_engine(waiting.pop())


@LONG
@ROUNDS
@on_servers
def test_threads_with_an_engine_each(kind: str, rounds: int, make_place: MakePlace) -> None:
    """16 threads, each with its own engine, upgrade one empty database: all succeed."""
    for _ in range(rounds):
        place = make_place(kind)
        assert from_a_barrier(partial(upgrade_with_own_engine, place)) == []
        place.assert_migrated()


@LONG
@ROUNDS
@on_servers
def test_threads_with_one_engine(kind: str, rounds: int, make_place: MakePlace) -> None:
    """16 threads that share an application's engine, of fewer connections, all succeed."""
    for _ in range(rounds):
        place = make_place(kind)
        engine = place.plain_engine(pool_size=2, max_overflow=1)
        assert from_a_barrier(partial(migrate.upgrade, engine, schema=place.schema)) == []
        place.assert_migrated()


@LONG
@ROUNDS
def test_threads_on_two_schemas(rounds: int, make_place: MakePlace) -> None:
    """16 threads upgrade two schemas of one database, half of them each: both are complete."""
    for _ in range(rounds):
        place, other = make_place("schema"), make_place("postgresql")
        other.url = place.url
        waiting = [place, other] * 8
        assert from_a_barrier(partial(upgrade_next, waiting)) == []
        place.assert_migrated()
        other.assert_migrated()


@LONG
@ROUNDS
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_processes(kind: str, rounds: int, make_place: MakePlace) -> None:
    """5 processes upgrade one empty database from a barrier: all succeed."""
    children = [start_child() for _ in range(PROCESSES)]
    try:
        for _ in range(rounds):
            place = make_place(kind)
            for child in children:
                child.stdin.write(f"{(place.url, place.schema)!r}\n")
                child.stdin.flush()
            assert [child.stdout.readline() for child in children] == ["done\n"] * PROCESSES
            place.assert_migrated()
    finally:
        errors = [child.communicate(timeout=60)[1] for child in children]
    assert errors == [""] * PROCESSES


def start_child() -> Any:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD],
        cwd=support.TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
