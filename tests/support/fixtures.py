"""The databases that kills, races, faults and the soak run on; a folder's conftest imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batchmill.store import BatchRepository
from tests.support import servers, sqlite
from tests.support.database import Database

KINDS = ["sqlite"]


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty, migrated file."""
    return sqlite.migrated_file(tmp_path_factory.mktemp("template") / "empty.db")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL server of this session's own; the root's conftest has it."""
    with servers.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MariaDB server of this session's own; the root's conftest has it."""
    with servers.mariadb(tmp_path_factory.mktemp("server")) as url:
        yield url


MakeDatabase = Callable[[], Database]


@pytest.fixture(params=KINDS)
def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeDatabase]:
    """Makes migrated databases; all that belongs to them is closed after the test."""
    made: list[Database] = []

    def make() -> Database:
        template = request.getfixturevalue("migrated_sqlite")
        made.append(sqlite.copy_of(template, tmp_path / f"batch-{len(made)}.db"))
        return made[-1]

    yield make
    for database in made:
        database.close()


@pytest.fixture
def database(make_database: MakeDatabase) -> Database:
    """One of them."""
    return make_database()


@pytest.fixture
def store(database: Database) -> BatchRepository:
    """A repository on it."""
    return database.store()
