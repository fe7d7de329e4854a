"""The databases that kills, races, faults and the soak run on; a folder's conftest imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batchmill.store import BatchRepository
from tests.support import servers, sqlite
from tests.support.database import Database

KINDS = ["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)]
on_sqlite = pytest.mark.parametrize("make_database", ["sqlite"], indirect=True)
"""For a test about what only SQLite has or does."""
on_servers = pytest.mark.parametrize("make_database", KINDS[1:], indirect=True)
"""For a test about what only a server has or does."""

on_servers_for_long = pytest.mark.parametrize(
    "make_database",
    [
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.soak),
        pytest.param("mariadb", marks=[pytest.mark.soak, pytest.mark.mariadb]),
    ],
    indirect=True,
)
"""For a test that takes long on a server, where a shorter one has the same promise."""


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
        made.append(_make(request, tmp_path / f"batch-{len(made)}.db"))
        return made[-1]

    yield make
    for database in made:
        database.close()


def _make(request: pytest.FixtureRequest, path: Path) -> Database:
    """One of the kind that the test is for; a driver is imported where it is needed."""
    if request.param == "sqlite":
        return sqlite.copy_of(request.getfixturevalue("migrated_sqlite"), path)
    if request.param == "postgresql":
        from tests.support.postgresql import PostgresqlDatabase

        return PostgresqlDatabase(request.getfixturevalue("postgresql_server"))
    from tests.support.mariadb import MariadbDatabase

    return MariadbDatabase(request.getfixturevalue("mariadb_server"))


@pytest.fixture
def database(make_database: MakeDatabase) -> Database:
    """One of them."""
    return make_database()


@pytest.fixture
def store(database: Database) -> BatchRepository:
    """A repository on it."""
    return database.store()
