"""batchmill's tables, made and checked for the application (design.md section 6).

Nothing migrates by itself: the application calls :func:`upgrade` when it is deployed, and
:func:`verify` when it starts. Each takes an Engine, or a Connection. With a Connection everything
happens inside the application's own transaction, and nothing is committed.

MariaDB commits with each table that is made or changed, whatever transaction it is in: give it an
Engine, or a Connection in whose transaction nothing was done. An upgrade that was cut off there
goes on with the next one.

``schema`` names a schema of PostgreSQL's that is there already, None the one that the connection's
search path finds. All of them raise ``InvalidInput`` for an argument that they can't use, and
``StoreBusy``, ``StoreUnavailable`` or ``StoreFull`` for what the database reports, with the
driver's error as ``__cause__``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from alembic import command
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.engine import URL
from sqlalchemy.exc import NoSuchModuleError

from batchmill.errors import (
    InvalidInput,
    MigrationError,
    NotMigrated,
    SchemaAhead,
    SchemaBehind,
    StoreBusy,
)
from batchmill.store.alembic_runs import head, known_revisions, run_on, write_sql
from batchmill.store.boundaries import alone, join, transaction, waiting_shortly
from batchmill.store.capabilities import Capabilities, capabilities_of, capabilities_of_kind
from batchmill.store.engine import in_memory, parse_url
from batchmill.store.failures import translated
from batchmill.store.models import metadata
from batchmill.store.schemas import check_schema, in_schema
from batchmill.store.transactions import connected
from batchmill.validation import check_text

VERSION_TABLE: Final = "batchmill_alembic_version"
OUR_TABLES: Final = frozenset({*metadata.tables, VERSION_TABLE})
PATIENCE: Final = 60.0
"""Seconds after which a database that stays busy is reported and not tried again."""

_HOW: Final = "run batchmill.store.migrate.upgrade(engine), or `batchmill db upgrade`"

Bind = Engine | Connection
_T = TypeVar("_T")


def upgrade(engine_or_connection: Bind, *, schema: str | None = None) -> None:
    """Bring the tables to this version; a database that is there already is left alone.

    Replicas may call it at the same time: one does the work and the others wait, up to a minute
    (``StoreBusy``). Raises ``SchemaAhead`` when the tables are of a newer batchmill, and
    ``MigrationError`` when tables of the same names exist that no revision made.
    """
    can = _check(engine_or_connection, schema)
    if (
        isinstance(engine_or_connection, Connection)
        or _persistently(lambda: current(engine_or_connection, schema=schema)) != head()
    ):
        _with_lock(engine_or_connection, schema, lambda on: _upgrade_on(on, can))


def downgrade(engine_or_connection: Bind, revision: str, *, schema: str | None = None) -> None:
    """Take the tables back to an older revision; ``"base"`` drops them with all that they hold.

    Raises ``MigrationError`` for a revision that isn't known.
    """
    _check(engine_or_connection, schema)
    _check_revision(revision)
    _with_lock(engine_or_connection, schema, lambda on: run_on(on, command.downgrade, revision))


def stamp(engine_or_connection: Bind, revision: str = "head", *, schema: str | None = None) -> None:
    """Note down a revision without running anything: for tables that were made another way.

    The tables, and the rows of ``batch_total``, must be as the revision would have left them.
    Raises ``MigrationError`` for a revision that isn't known.
    """
    _check(engine_or_connection, schema)
    _check_revision(revision)
    _with_lock(engine_or_connection, schema, lambda on: run_on(on, command.stamp, revision))


def current(engine_or_connection: Bind, *, schema: str | None = None) -> str | None:
    """The revision of the tables, None when there are none; it changes nothing."""
    can = _check(engine_or_connection, schema)
    if isinstance(engine_or_connection, Engine) and _lacks_file(engine_or_connection):
        return None
    with (
        translated(),
        _reading(engine_or_connection, can) as connection,
        in_schema(connection, can, schema),
    ):
        return _current_on(connection)


def verify(engine_or_connection: Bind, *, schema: str | None = None) -> None:
    """Return when the tables are of this version; it changes nothing.

    Raises ``NotMigrated`` (no tables: run an upgrade), ``SchemaBehind`` (run an upgrade) or
    ``SchemaAhead`` (install a newer batchmill).
    """
    found = current(engine_or_connection, schema=schema)
    if found is None:
        raise NotMigrated(f"the database has no batchmill tables yet; {_HOW}")
    _refuse_ahead(found)
    if found != head():
        raise SchemaBehind(f"the database's tables are of an older batchmill; {_HOW}")


def sql(
    url: str | URL, *, schema: str | None = None, start: str = "base", end: str = "head"
) -> str:
    """The SQL that takes a database of this kind from one revision to another; connects nowhere.

    Only the kind of database in ``url`` matters. Raises ``MigrationError`` for a revision that
    isn't known.
    """
    address = check_place(url, schema)
    _check_revision(start, "start")
    _check_revision(end, "end")
    return write_sql(address, schema, start, end)


def table_names(engine: Engine, *, schema: str | None = None) -> frozenset[str]:
    """The names of all tables there, anybody's; it changes nothing."""
    can = _check(engine, schema)
    with translated(), _reading(engine, can) as connection, in_schema(connection, can, schema):
        return frozenset(inspect(connection).get_table_names())


ObjectKind = Literal[
    "schema", "table", "column", "index", "unique_constraint", "foreign_key_constraint"
]
_ParentNames = MutableMapping[
    Literal["schema_name", "table_name", "schema_qualified_table_name"], str | None
]


def include_name(name: str | None, type_: ObjectKind, parent_names: _ParentNames) -> bool:
    """The filter that keeps batchmill's tables out of an application's own autogenerate.

    Hand it to ``context.configure(include_name=...)`` in the application's ``env.py``; where
    there is a filter already, let both agree.
    """
    return not (type_ == "table" and name in OUR_TABLES)


def environment_options(dialect_name: str) -> dict[str, Any]:
    """What ``env.py`` hands to ``context.configure``, online and offline."""
    return {
        "target_metadata": metadata,
        "version_table": VERSION_TABLE,
        "include_name": _include_ours,
        "transactional_ddl": capabilities_of_kind(dialect_name).ddl_rolls_back,
        "render_as_batch": True,
        "compare_type": True,
        "compare_server_default": True,
    }


@contextmanager
def locked(engine: Engine, schema: str | None = None) -> Iterator[Connection]:
    """A transaction that no other migration of these tables runs beside; commits at its end."""
    can = capabilities_of(engine.dialect)
    with connected(engine, can) as connection, ExitStack() as inside:
        if can.named_unlock is not None:  # a session's lock, which has to cover the commit too
            inside.enter_context(alone(connection, can, PATIENCE))
            connection.commit()
        inside.enter_context(transaction(connection, can))
        inside.enter_context(waiting_shortly(connection, can))
        inside.enter_context(in_schema(connection, can, schema))
        if can.named_unlock is None:
            inside.enter_context(alone(connection, can, PATIENCE))
        yield connection


def _include_ours(name: str | None, type_: ObjectKind, parent_names: _ParentNames) -> bool:
    return type_ != "table" or name in OUR_TABLES


def check_place(url: str | URL, schema: str | None) -> URL:
    """The address; raises ``InvalidInput`` for a kind of database that is not supported.

    So it does for a schema where there are none. It connects nowhere.
    """
    address = parse_url(url)
    check_schema(schema, capabilities_of_kind(address.get_backend_name()))
    try:
        address.get_dialect()
    except NoSuchModuleError:
        raise InvalidInput("url: names a driver that SQLAlchemy doesn't know") from None
    return address


def _check(engine_or_connection: Bind, schema: str | None) -> Capabilities:
    if not isinstance(engine_or_connection, Engine | Connection):
        raise InvalidInput("engine_or_connection: must be a SQLAlchemy Engine or Connection")
    can = capabilities_of(engine_or_connection.dialect)
    check_schema(schema, can)
    return can


def _check_revision(revision: str, field: str = "revision") -> None:
    if not check_text(field, revision):
        raise InvalidInput(f"{field}: must not be empty; head is the newest, base is before all")


def _with_lock(
    engine_or_connection: Bind, schema: str | None, work: Callable[[Connection], None]
) -> None:
    """Work in the application's transaction, or in one of our own until it isn't busy."""
    if isinstance(engine_or_connection, Engine):
        _persistently(lambda: _work_alone(engine_or_connection, schema, work))
        return
    connection, can = engine_or_connection, capabilities_of(engine_or_connection.dialect)
    with translated():
        join(connection, can)
        with in_schema(connection, can, schema), alone(connection, can, PATIENCE):
            work(connection)


def _work_alone(engine: Engine, schema: str | None, work: Callable[[Connection], None]) -> None:
    with translated(), locked(engine, schema) as connection:
        work(connection)


def _persistently(attempt: Callable[[], _T]) -> _T:
    """Try again while the database is busy: a switch of the journal mode ignores its timeout."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except StoreBusy:
            if time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(0.01, 0.1))


def _upgrade_on(connection: Connection, can: Capabilities) -> None:
    found = _current_on(connection)
    if found is None:
        _refuse_strangers(connection, can)
    else:
        _refuse_ahead(found)
    if found != head():
        run_on(connection, command.upgrade, "head")


def _refuse_strangers(connection: Connection, can: Capabilities) -> None:
    """Refuse tables of our names that no revision made.

    Where DDL isn't rolled back, and the version table is there, they are what an upgrade left
    that was cut off: its revision can be run again.
    """
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables and not can.ddl_rolls_back:
        return
    for name in metadata.tables:
        if name in tables:
            raise MigrationError(
                f"the database has a table {name} that no upgrade of batchmill made; use another "
                "database, or, if batchmill's metadata made it, batchmill.store.migrate.stamp"
            )


def _refuse_ahead(found: str) -> None:
    if found not in known_revisions():
        raise SchemaAhead(
            "the database's tables are of a newer batchmill than the one installed; "
            "upgrade the package: pip install -U batchmill"
        )


def _current_on(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    heads = context.get_current_heads()
    if len(heads) > 1:
        raise MigrationError(f"{VERSION_TABLE} holds more than one row; restore the right one")
    return heads[0] if heads else None


@contextmanager
def _reading(engine_or_connection: Bind, can: Capabilities) -> Iterator[Connection]:
    """A connection to read with: the application's, or one that is given back after."""
    if isinstance(engine_or_connection, Connection):
        yield engine_or_connection
        return
    with connected(engine_or_connection, can) as connection:
        yield connection


def _lacks_file(engine: Engine) -> bool:
    """True when connecting would create the SQLite file, which a mere look must not do."""
    url = engine.url
    if url.get_backend_name() != "sqlite" or in_memory(url):
        return False
    name = url.database or ""
    path = Path(name)
    return not name.startswith("file:") and not path.exists() and path.absolute().parent.is_dir()
