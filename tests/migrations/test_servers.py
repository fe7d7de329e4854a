"""Migrations on PostgreSQL, in its default schema and in another, and on MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]
import pytest
from pymysql.constants import CLIENT  # type: ignore[import-untyped]
from sqlalchemy import Connection, event, quoted_name, text

from batchmill.errors import (
    InvalidInput,
    MigrationError,
    NotMigrated,
    SchemaAhead,
    SchemaBehind,
    StoreError,
    StoreUnavailable,
)
from batchmill.store import migrate
from batchmill.store.models import metadata
from tests.migrations import support
from tests.migrations.places import SERVERS, MakePlace, Place

on_servers = pytest.mark.parametrize("place", SERVERS, indirect=True)
on_postgresql = pytest.mark.parametrize("place", ["postgresql", "schema"], indirect=True)


def run_script(place: Place, script: str) -> None:
    """Run a script by the driver alone."""
    at = place.address
    if place.kind == "mariadb":
        flag = CLIENT.MULTI_STATEMENTS
        where: dict[str, Any] = {"host": at.host, "port": at.port, "database": at.database}
        connection: Any = pymysql.connect(
            **where, user=at.username, password=str(at.password), client_flag=flag, autocommit=True
        )
        with connection.cursor() as cursor:
            cursor.execute(script)
            while cursor.nextset():
                pass
    else:
        connection = psycopg.connect(
            at.set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True
        )
        connection.execute(script)
    connection.close()


def left(place: Place) -> str:
    """What the catalog holds besides the version table."""
    lines = place.dump().splitlines()
    return "\n".join(line for line in lines if "version" not in line)


@on_servers
def test_the_schema_is_the_kept_one(place: Place) -> None:
    """An upgrade leaves the kept schema, the rows of the total and one version; verify agrees."""
    migrate.upgrade(place.engine(), schema=place.schema)
    migrate.verify(place.engine(), schema=place.schema)
    assert migrate.current(place.engine(), schema=place.schema) == support.HEAD
    place.assert_migrated()


@on_servers
def test_autogenerate_finds_no_difference(place: Place) -> None:
    """After an upgrade, autogenerate sees nothing to do; a dropped index it does see."""
    migrate.upgrade(place.engine(), schema=place.schema)
    assert place.differences() == []
    with place.inside() as connection:
        on = " ON batch_turn" if place.kind == "mariadb" else ""
        connection.exec_driver_sql(f"DROP INDEX batch_turn_home_ix{on}")
    assert len(place.differences()) == 1


@on_servers
def test_the_models_make_the_same(place: Place, make_place: MakePlace) -> None:
    """``metadata.create_all`` makes what the revisions make, to the last default."""
    migrate.upgrade(place.engine(), schema=place.schema)
    other = make_place(place.kind)
    with other.inside() as connection:
        metadata.create_all(connection)
    assert left(other) == left(place)


@on_servers
def test_step_by_step_down_and_up_again(place: Place) -> None:
    """Each revision can be taken back; nothing is left at the end; up again is the same schema."""
    engine = place.engine()
    migrate.upgrade(engine, schema=place.schema)
    for number in range(6, 0, -1):
        migrate.downgrade(engine, f"batchmill_{number:04}", schema=place.schema)
        assert migrate.current(engine, schema=place.schema) == f"batchmill_{number:04}"
    migrate.downgrade(engine, "base", schema=place.schema)
    assert left(place) in {"", "    UNIQUE PRIMARY (version_num)"}
    assert migrate.current(engine, schema=place.schema) is None
    migrate.upgrade(engine, schema=place.schema)
    place.assert_migrated()


@on_servers
def test_offline_sql_makes_the_same(place: Place) -> None:
    """What ``sql`` writes, run by the driver alone, is what an upgrade does."""
    run_script(place, migrate.sql(place.url, schema=place.schema))
    place.assert_migrated()
    migrate.verify(place.engine(), schema=place.schema)


@on_servers
def test_offline_sql_goes_on(place: Place) -> None:
    """``sql`` from a revision on brings an older database to this version."""
    migrate.upgrade(place.engine(), schema=place.schema)
    migrate.downgrade(place.engine(), "batchmill_0003", schema=place.schema)
    run_script(place, migrate.sql(place.url, schema=place.schema, start="batchmill_0003"))
    place.assert_migrated()


@on_servers
def test_states(place: Place) -> None:
    """No tables, older and newer ones are three errors, each with what to run."""
    engine = place.engine()
    with pytest.raises(NotMigrated, match="upgrade"):
        migrate.verify(engine, schema=place.schema)
    migrate.upgrade(engine, schema=place.schema)
    migrate.downgrade(engine, "batchmill_0003", schema=place.schema)
    with pytest.raises(SchemaBehind, match="upgrade"):
        migrate.verify(engine, schema=place.schema)
    with place.inside() as connection:
        ahead = f"UPDATE {migrate.VERSION_TABLE} SET version_num = 'batchmill_9999'"
        connection.exec_driver_sql(ahead)
    for call in (migrate.verify, migrate.upgrade):
        with pytest.raises(SchemaAhead, match="pip install"):
            call(engine, schema=place.schema)


@on_servers
def test_stamp_for_tables_that_the_models_made(place: Place) -> None:
    """Tables made by ``metadata.create_all`` are refused by upgrade, taken after a stamp."""
    with place.inside() as connection:
        metadata.create_all(connection)
    with pytest.raises(MigrationError, match="stamp"):
        migrate.upgrade(place.engine(), schema=place.schema)
    migrate.stamp(place.engine(), schema=place.schema)
    migrate.verify(place.engine(), schema=place.schema)


@on_servers
def test_an_engine_as_applications_make_it(place: Place) -> None:
    """An engine in autocommit, or in REPEATABLE READ, migrates as ours does."""
    for level in ("AUTOCOMMIT", "REPEATABLE READ"):
        engine = place.plain_engine(isolation_level=level, pool_size=1, max_overflow=0)
        migrate.upgrade(engine, schema=place.schema)
        place.assert_migrated()
        migrate.downgrade(engine, "base", schema=place.schema)


@on_servers
def test_a_connection_in_autocommit(place: Place) -> None:
    """A Connection in autocommit has no transaction to work in: InvalidInput, nothing is made."""
    engine = place.plain_engine(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(InvalidInput, match="autocommit"):
        migrate.upgrade(connection, schema=place.schema)
    assert place.dump() == "\n"


@on_postgresql
def test_in_the_applications_transaction(place: Place) -> None:
    """With a Connection nothing is committed, and plain names mean afterwards what they meant."""
    with place.engine().connect() as connection:
        before = search_path(connection)
        migrate.upgrade(connection, schema=place.schema)
        migrate.verify(connection, schema=place.schema)
        assert search_path(connection) == before
        connection.rollback()
    assert place.dump() == "\n"


def search_path(connection: Connection) -> Any:
    return connection.execute(text("SHOW search_path")).scalar()


@on_postgresql
def test_an_error_leaves_the_search_path(place: Place) -> None:
    """After an error, too, plain names mean in the application's transaction what they meant."""
    with place.inside() as connection:
        metadata.create_all(connection)
    with place.engine().connect() as connection:
        before = search_path(connection)
        with pytest.raises(MigrationError):
            migrate.upgrade(connection, schema=place.schema)
        assert search_path(connection) == before


def test_a_connection_on_mariadb(make_place: MakePlace) -> None:
    """MariaDB commits with each table: an upgrade on a Connection is done when it returns."""
    place = make_place("mariadb")
    with place.engine().connect() as connection:
        migrate.upgrade(connection)
        migrate.verify(connection)
        connection.rollback()
    place.assert_migrated()


@contextmanager
def refusing(engine: Any, words: str) -> Iterator[None]:
    """Let the database refuse a statement."""

    def refuse(_c: Any, _cu: Any, statement: str, parameters: Any, *_rest: Any) -> Any:
        return ("SELECT 1 / 0" if words in statement else statement), parameters

    event.listen(engine, "before_cursor_execute", refuse, retval=True)
    yield
    event.remove(engine, "before_cursor_execute", refuse)


@on_postgresql
def test_a_failed_step_leaves_nothing(place: Place) -> None:
    """When a revision fails, all of the upgrade is undone, and a second one succeeds."""
    engine = place.engine()
    with refusing(engine, "CREATE TABLE batch_total"), pytest.raises(StoreError):
        migrate.upgrade(engine, schema=place.schema)
    assert place.dump() == "\n"
    migrate.upgrade(engine, schema=place.schema)
    place.assert_migrated()


SCHEMA_CALLS = [migrate.upgrade, migrate.verify, migrate.current, migrate.stamp]


@pytest.mark.parametrize("call", SCHEMA_CALLS)
@pytest.mark.parametrize("name", ["", "a\x00b", "\ud83d", "é" * 32, "pg_temp", "$user", 7])
def test_names_that_are_no_schema(call: Any, name: Any, postgresql_server: str) -> None:
    """A name that can't be a schema's is InvalidInput that names the field; nothing is asked."""
    from batchmill.store import create_store_engine

    engine = create_store_engine(postgresql_server)
    with pytest.raises(InvalidInput, match=r"^schema: "):
        call(engine, schema=name)
    with pytest.raises(InvalidInput, match=r"^schema: "):
        migrate.sql(postgresql_server, schema=name)


@pytest.mark.parametrize("call", SCHEMA_CALLS)
def test_a_schema_that_is_not_there(call: Any, make_place: MakePlace) -> None:
    """A missing schema is InvalidInput that says what to do; it is never made by itself."""
    place = make_place("postgresql")
    with pytest.raises(InvalidInput, match=r"^schema: .*CREATE SCHEMA"):
        call(place.engine(), schema="missing")
    with place.engine().connect() as connection, pytest.raises(InvalidInput, match="CREATE SCHEMA"):
        call(connection, schema="missing")
    assert place.run("SELECT 1 FROM pg_namespace WHERE nspname = 'missing'") == []


def test_a_schema_that_the_user_may_not_use(make_place: MakePlace) -> None:
    """Without USAGE a schema is as if it weren't there; without CREATE the error says so."""
    place = make_place("schema")
    with place.inside() as connection:
        connection.exec_driver_sql("CREATE ROLE guest LOGIN")
    guest = place.engine(connect_args={"user": "guest"})
    with pytest.raises(InvalidInput, match="USAGE"):
        migrate.upgrade(guest, schema=place.schema)
    with place.inside() as connection:
        name = quoted_name(str(place.schema), quote=True)
        quote = connection.dialect.identifier_preparer.quote_schema
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {quote(name)} TO guest", {})
    with pytest.raises(StoreUnavailable, match="grant"):
        migrate.upgrade(guest, schema=place.schema)


@pytest.mark.parametrize("place", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize("call", [*SCHEMA_CALLS])
def test_no_schemas_elsewhere(place: Place, call: Any) -> None:
    """SQLite and MariaDB have no schemas: naming one is InvalidInput, offline too."""
    with pytest.raises(InvalidInput, match=r"^schema: "):
        call(place.engine(), schema="other")
    with pytest.raises(InvalidInput, match=r"^schema: "):
        migrate.sql(place.url, schema="other")


MODES = {
    "not strict": ("CHARACTER SET latin1 COLLATE latin1_german2_ci", ""),
    "strict": ("CHARACTER SET ucs2", "TRADITIONAL"),
    "ansi": ("CHARACTER SET utf8mb3 COLLATE utf8mb3_bin", "ANSI,STRICT_ALL_TABLES"),
    "no escapes": ("CHARACTER SET utf8mb4 COLLATE utf8mb4_turkish_ci", "NO_BACKSLASH_ESCAPES"),
}


@pytest.mark.parametrize("name", MODES)
def test_mariadb_whatever_its_defaults_are(name: str, make_place: MakePlace) -> None:
    """Under any character set and sql_mode the tables are the kept ones, to each collation.

    So every text is utf8mb4_nopad_bin, the long ones LONGTEXT, and InnoDB holds them.
    """
    options, mode = MODES[name]
    place = make_place("mariadb", options)
    settings = f"SET default_storage_engine = MyISAM, sql_mode = '{mode}'"
    engine = place.engine(connect_args={"init_command": settings})
    migrate.upgrade(engine)
    migrate.verify(engine)
    place.assert_migrated()
    texts = place.run(
        "SELECT DISTINCT data_type, collation_name FROM information_schema.columns"
        " WHERE table_schema = database() AND collation_name IS NOT NULL"
        f" AND table_name <> '{migrate.VERSION_TABLE}' ORDER BY 1"
    )
    assert texts == [("longtext", "utf8mb4_nopad_bin"), ("varchar", "utf8mb4_nopad_bin")]
