"""Databases to migrate: each a test's own, on a server of the session's own, and empty."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateSchema

from batchmill.store import create_store_engine, migrate
from batchmill.store.capabilities import capabilities_of
from batchmill.store.engine import parse_url
from batchmill.store.schemas import in_schema
from tests.migrations import catalog, support

SCHEMA = 'Mill "of" O\'Brien %s :x'
"""A name that needs every kind of quoting."""

SERVERS = ["postgresql", "schema", "mariadb"]
"""Kinds of place: a database of each server's, and a schema beside the default one."""
EVERYWHERE = ["sqlite", *SERVERS]

_NUMBERS = itertools.count()


class Place:
    """Where the tables may go: a database, or a schema of one."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url
        self.schema = SCHEMA if kind == "schema" else None
        self._engines: list[Engine] = []
        if self.schema is not None:
            self.run(CreateSchema(self.schema))

    @property
    def address(self) -> URL:
        """The URL in its parts."""
        return make_url(self.url)

    def engine(self, **given: Any) -> Engine:
        """An engine of our making."""
        self._engines.append(create_store_engine(self.url, **given))
        return self._engines[-1]

    def plain_engine(self, **given: Any) -> Engine:
        """An engine as an application makes it, with none of our settings."""
        self._engines.append(create_engine(parse_url(self.url), **given))
        return self._engines[-1]

    def close(self) -> None:
        """Dispose of every engine; nobody may still have a connection."""
        checked_out = [engine.pool.checkedout() for engine in self._engines]  # type: ignore[attr-defined]
        for engine in self._engines:
            engine.dispose()
        assert checked_out == [0] * len(checked_out)

    @contextmanager
    def inside(self) -> Iterator[Connection]:
        """A transaction in which plain names are those of this place."""
        engine = create_engine(parse_url(self.url), poolclass=NullPool)
        can = capabilities_of(engine.dialect)
        with engine.begin() as connection, in_schema(connection, can, self.schema):
            yield connection

    def run(self, statement: Any, **params: Any) -> Any:
        """Run a statement in a transaction of its own, outside of the schema; its rows."""
        engine = create_engine(parse_url(self.url), poolclass=NullPool)
        with engine.begin() as connection:
            statement = text(statement) if isinstance(statement, str) else statement
            found = connection.execute(statement, params)
            return [tuple(row) for row in found] if found.returns_rows else []

    def dump(self) -> str:
        """The tables as text."""
        if self.kind == "sqlite":
            return support.schema_of(self.plain_engine())
        with self.inside() as connection:
            return catalog.dump(connection)

    def kept(self) -> str:
        """The tables as they were last looked at."""
        return support.kept_schema({"schema": "postgresql"}.get(self.kind, self.kind))

    def differences(self) -> list[Any]:
        """What our own autogenerate would do to make the tables fit the models."""
        with self.inside() as connection:
            options = migrate.environment_options(connection.dialect.name)
            context = MigrationContext.configure(connection, opts=options)
            return list(compare_metadata(context, options["target_metadata"]))

    def totals(self) -> list[tuple[Any, ...]]:
        """The rows that an upgrade leaves."""
        with self.inside() as connection:
            rows = connection.execute(text("SELECT shard, nbytes, turns FROM batch_total"))
            return sorted(map(tuple, rows))

    def assert_migrated(self) -> None:
        """Everything is there, once."""
        assert self.dump() == self.kept()
        assert self.totals() == [(shard, 0, 0) for shard in range(-2, 8)]
        with self.inside() as connection:
            found = connection.execute(text(f"SELECT * FROM {migrate.VERSION_TABLE}")).all()
        assert [tuple(row) for row in found] == [(support.HEAD,)]


MakePlace = Callable[..., Place]


def with_database(url: str, name: str) -> str:
    """The URL of another database of a server's.

    By hand: SQLAlchemy 2.0.0 doesn't write out a password with a % as it was.
    """
    head, mark, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}{mark}{query}"


@pytest.fixture
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakePlace]:
    """Makes places of a kind; what they hold is dropped after the test."""
    made: list[tuple[Place, Engine | None]] = []

    def make(kind: str, options: str = "") -> Place:
        if kind == "sqlite":
            place = Place(kind, f"sqlite:///{tmp_path / f'{len(made)}.db'}")
            made.append((place, None))
            return place
        server = {"schema": "postgresql"}.get(kind, kind)
        at = request.getfixturevalue(f"{server}_server")
        name = f"migrated_{os.getpid()}_{next(_NUMBERS)}"
        maker = create_engine(parse_url(at), isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with maker.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} {options}")
        made.append((Place(kind, with_database(at, name)), maker))
        return made[-1][0]

    yield make
    for place, maker in made:
        place.close()
        if maker is not None:
            force = " WITH (FORCE)" if place.kind != "mariadb" else ""
            with maker.connect() as connection:
                connection.exec_driver_sql(
                    f"DROP DATABASE IF EXISTS {place.address.database}{force}"
                )


@pytest.fixture(params=EVERYWHERE)
def place(request: pytest.FixtureRequest, make_place: MakePlace) -> Place:
    """An empty place of each kind; a test picks its own by ``indirect=True``."""
    return make_place(request.param)
