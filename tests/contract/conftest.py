"""The servers that the contract runs over: one of each a worker of the test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from sqlalchemy.schema import CreateSchema

from batchmill.store import create_store_engine, migrate
from tests.support import servers


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Engine]:
    """An engine on a migrated PostgreSQL database."""
    with servers.postgresql() as url:
        yield from _migrated(url)


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine on a migrated MariaDB database."""
    with servers.mariadb(tmp_path_factory.mktemp("server")) as url:
        yield from _migrated(url)


@pytest.fixture(scope="session")
def schema(postgresql: Engine) -> str:
    """A migrated schema beside the default one, under a name that needs every kind of quoting."""
    name = 'O\'Brien "%s" :x'
    with postgresql.begin() as connection:
        connection.execute(CreateSchema(name))
    migrate.upgrade(postgresql, schema=name)
    return name


def _migrated(url: str) -> Iterator[Engine]:
    engine = create_store_engine(url)
    migrate.upgrade(engine)
    yield engine
    engine.dispose()
