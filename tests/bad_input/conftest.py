from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.bad_input.worlds import ServerWorld, World, Worlds
from tests.support.server_database import ServerDatabase

_FIXTURES = {"PostgreSQL": "postgresql_world", "MariaDB": "mariadb_world"}


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """What makes worlds, its file migrated and filled once."""
    return Worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture(scope="session")
def postgresql_world(postgresql_server: str) -> Iterator[ServerWorld]:
    """What makes worlds on PostgreSQL."""
    from tests.support.postgresql import PostgresqlDatabase

    yield from _world(PostgresqlDatabase(postgresql_server))


@pytest.fixture(scope="session")
def mariadb_world(mariadb_server: str) -> Iterator[ServerWorld]:
    """What makes worlds on MariaDB."""
    from tests.support.mariadb import MariadbDatabase

    yield from _world(MariadbDatabase(mariadb_server))


def _world(database: ServerDatabase) -> Iterator[ServerWorld]:
    with closing(database):
        yield ServerWorld(database)


@pytest.fixture
def open_world(request: pytest.FixtureRequest, worlds: Worlds) -> Iterator[Callable[[str], World]]:
    """Opens a fresh world of a kind of store; all are closed after the test."""
    opened: list[World] = []

    def open_one(kind: str) -> World:
        if kind in _FIXTURES:
            opened.append(request.getfixturevalue(_FIXTURES[kind]).open())
        else:
            opened.append(worlds.open(kind))
        return opened[-1]

    yield open_one
    for world in opened:
        world.close()
