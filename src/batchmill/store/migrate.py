"""batchmill's tables, made and checked for the application (design.md section 6).

Nothing migrates by itself: the application calls :func:`upgrade` when it is deployed, and
:func:`verify` when it starts. Each takes an Engine, or a Connection. With a Connection everything
happens inside the application's own transaction, and nothing is committed.

All of them raise ``InvalidInput`` for an argument that they can't use, and ``StoreBusy``,
``StoreUnavailable`` or ``StoreFull`` for what the database reports, with the driver's error as
``__cause__``.
"""

from __future__ import annotations

import io
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
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
from batchmill.store.boundaries import alone, join, transaction
from batchmill.store.capabilities import capabilities_of
from batchmill.store.engine import in_memory, parse_url
from batchmill.store.failures import translated
from batchmill.store.models import metadata
from batchmill.validation import check_text

VERSION_TABLE: Final = "batchmill_alembic_version"
OUR_TABLES: Final = frozenset({*metadata.tables, VERSION_TABLE})
PATIENCE: Final = 60.0
"""Seconds after which a database that stays busy is reported and not tried again."""

_HOW: Final = "run batchmill.store.migrate.upgrade(engine), or `batchmill db upgrade`"
_LOCATION: Final = "batchmill.migrations:."
# Databases that roll DDL back with its transaction; on others each revision stands by itself.
_DDL_ROLLS_BACK: Final = frozenset({"sqlite", "postgresql"})

# Alembic keeps what it is doing in module globals. Taken last, after the database's lock: who
# waits for this lock never keeps its holder from finishing.
_ALEMBIC: Final = threading.RLock()

Bind = Engine | Connection
_T = TypeVar("_T")


def upgrade(engine_or_connection: Bind, *, schema: str | None = None) -> None:
    """Bring the tables to this version; a database that is there already is left alone.

    Replicas may call it at the same time: one does the work and the others wait. Raises
    ``SchemaAhead`` when the tables are of a newer batchmill, and ``MigrationError`` when tables
    of the same names exist that no revision made.
    """
    _check(engine_or_connection, schema)
    if (
        isinstance(engine_or_connection, Connection)
        or _persistently(lambda: current(engine_or_connection)) != _head()
    ):
        _with_lock(engine_or_connection, _upgrade_on)


def downgrade(engine_or_connection: Bind, revision: str, *, schema: str | None = None) -> None:
    """Take the tables back to an older revision; ``"base"`` drops them with all that they hold.

    Raises ``MigrationError`` for a revision that isn't known.
    """
    _check(engine_or_connection, schema)
    _check_revision(revision)
    _with_lock(engine_or_connection, lambda on: _run_alembic(on, command.downgrade, revision))


def stamp(engine_or_connection: Bind, revision: str = "head", *, schema: str | None = None) -> None:
    """Note down a revision without running anything: for tables that were made another way.

    The tables, and the row of ``batch_total``, must be as the revision would have left them.
    Raises ``MigrationError`` for a revision that isn't known.
    """
    _check(engine_or_connection, schema)
    _check_revision(revision)
    _with_lock(engine_or_connection, lambda on: _run_alembic(on, command.stamp, revision))


def current(engine_or_connection: Bind, *, schema: str | None = None) -> str | None:
    """The revision of the tables, None when there are none; it changes nothing."""
    _check(engine_or_connection, schema)
    if isinstance(engine_or_connection, Engine) and _lacks_file(engine_or_connection):
        return None
    with translated(), _reading(engine_or_connection) as connection:
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
    if found != _head():
        raise SchemaBehind(f"the database's tables are of an older batchmill; {_HOW}")


def sql(url: str | URL, *, start: str = "base", end: str = "head") -> str:
    """The SQL that takes a database of this kind from one revision to another; connects nowhere.

    Only the kind of database in ``url`` matters. Raises ``MigrationError`` for a revision that
    isn't known.
    """
    config = _config(url=_known_kind(url))
    _check_revision(start, "start")
    _check_revision(end, "end")
    config.output_buffer = text = io.StringIO()
    with _alembic():
        command.upgrade(config, f"{start}:{end}", sql=True)
    return text.getvalue()


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
        "transactional_ddl": dialect_name in _DDL_ROLLS_BACK,
        "render_as_batch": True,
        "compare_type": True,
        "compare_server_default": True,
    }


@contextmanager
def locked(engine: Engine) -> Iterator[Connection]:
    """A transaction that no other migration of this database runs beside; commits at its end."""
    can = capabilities_of(engine.dialect)
    with engine.connect() as connection, transaction(connection, can), alone(connection, can):
        yield connection


def _include_ours(name: str | None, type_: ObjectKind, parent_names: _ParentNames) -> bool:
    return type_ != "table" or name in OUR_TABLES


def _known_kind(url: str | URL) -> URL:
    address = parse_url(url)
    try:
        address.get_dialect()
    except NoSuchModuleError:
        raise InvalidInput("url: names a kind of database that SQLAlchemy doesn't know") from None
    return address


def _check(engine_or_connection: Bind, schema: str | None) -> None:
    if not isinstance(engine_or_connection, Engine | Connection):
        raise InvalidInput("engine_or_connection: must be a SQLAlchemy Engine or Connection")
    if schema is not None and not capabilities_of(engine_or_connection.dialect).schemas:
        raise InvalidInput("schema: this database has no schemas; leave it out")


def _check_revision(revision: str, field: str = "revision") -> None:
    if not check_text(field, revision):
        raise InvalidInput(f"{field}: must not be empty; head is the newest, base is before all")


def _with_lock(engine_or_connection: Bind, work: Callable[[Connection], None]) -> None:
    """Work in the application's transaction, or in one of our own until it isn't busy."""
    if isinstance(engine_or_connection, Engine):
        _persistently(lambda: _work_alone(engine_or_connection, work))
        return
    can = capabilities_of(engine_or_connection.dialect)
    with translated():
        join(engine_or_connection, can)
        with alone(engine_or_connection, can):
            work(engine_or_connection)


def _work_alone(engine: Engine, work: Callable[[Connection], None]) -> None:
    with translated(), locked(engine) as connection:
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


def _upgrade_on(connection: Connection) -> None:
    found = _current_on(connection)
    if found is None:
        _refuse_strangers(connection)
    else:
        _refuse_ahead(found)
    if found != _head():
        _run_alembic(connection, command.upgrade, "head")


def _refuse_strangers(connection: Connection) -> None:
    """Refuse tables of our names that no revision made.

    Where DDL isn't rolled back, and the version table is there, they are what an upgrade left
    that was cut off: its revision can be run again.
    """
    tables = inspect(connection).get_table_names()
    if VERSION_TABLE in tables and connection.dialect.name not in _DDL_ROLLS_BACK:
        return
    for name in metadata.tables:
        if name in tables:
            raise MigrationError(
                f"the database has a table {name} that no upgrade of batchmill made; use another "
                "database, or, if batchmill's metadata made it, batchmill.store.migrate.stamp"
            )


def _refuse_ahead(found: str) -> None:
    if found not in _known_revisions():
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
def _reading(engine_or_connection: Bind) -> Iterator[Connection]:
    """A connection to read with: the application's, or one that is given back after."""
    if isinstance(engine_or_connection, Connection):
        yield engine_or_connection
        return
    with engine_or_connection.connect() as connection:
        yield connection


def _lacks_file(engine: Engine) -> bool:
    """True when connecting would create the SQLite file, which a mere look must not do."""
    url = engine.url
    if url.get_backend_name() != "sqlite" or in_memory(url):
        return False
    name = url.database or ""
    path = Path(name)
    return not name.startswith("file:") and not path.exists() and path.absolute().parent.is_dir()


def _run_alembic(
    connection: Connection, run: Callable[[Config, str], object], revision: str
) -> None:
    with _alembic():
        run(_config(connection=connection), revision)


@contextmanager
def _alembic() -> Iterator[None]:
    """Alembic to ourselves, its own errors as ours."""
    with _ALEMBIC:
        try:
            yield
        except CommandError as error:
            raise MigrationError(f"the migration could not be run: {error}") from error


def _config(**attributes: Any) -> Config:
    """A configuration that reads no file, so that it sets up no logging and interpolates no URL."""
    config = Config(stdout=io.StringIO(), attributes=attributes)
    config.set_main_option("script_location", _LOCATION)
    config.set_main_option("path_separator", "os")
    return config


@cache
def _scripts() -> Mapping[str, Any]:
    with _ALEMBIC:
        scripts = ScriptDirectory.from_config(_config())
        return {
            "head": scripts.get_current_head(),
            "known": [s.revision for s in scripts.walk_revisions()],
        }


def _head() -> str:
    return str(_scripts()["head"])


def _known_revisions() -> Collection[str]:
    return frozenset(_scripts()["known"])
