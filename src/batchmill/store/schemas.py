"""Tables in a schema of PostgreSQL's: which names can be one, and how migrations get into it.

A repository's statements name the schema. Migrations set the search path instead: Alembic would
see differences that aren't there between qualified and plain names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from batchmill.errors import InvalidInput
from batchmill.store.boundaries import join
from batchmill.store.capabilities import Capabilities
from batchmill.validation import check_text

LONGEST: Final = 63
"""Bytes of a name; the server cuts what is longer."""

_LOOK: Final = text("SELECT current_setting('search_path')")
_SET: Final = text("SELECT set_config('search_path', :path, true)")
_SET_QUOTED: Final = text("SELECT set_config('search_path', quote_ident(:schema), true)")
_FOUND: Final = text("SELECT current_schema()")


def check_schema(schema: Any, can: Capabilities) -> str | None:
    """The name of a schema, or None; raises ``InvalidInput``.

    Whether there is one of that name is seen only when something is done in it.
    """
    if schema is None:
        return None
    if not can.schemas:
        raise InvalidInput("schema: this database has no schemas; leave it out")
    name = check_text("schema", schema)
    if not name:
        raise InvalidInput("schema: must not be empty; leave it out for the default one")
    if len(name.encode()) > LONGEST:
        raise InvalidInput(f"schema: must have at most {LONGEST} bytes; choose a shorter name")
    if name.startswith("pg_") or name in {"information_schema", "$user"}:
        raise InvalidInput("schema: is a name that PostgreSQL keeps for itself; choose another")
    return name


@contextmanager
def in_schema(connection: Connection, can: Capabilities, schema: str | None) -> Iterator[None]:
    """Let plain names mean what is in this schema, and nothing else, until the block has ended.

    None leaves them as they are. It happens in the connection's transaction. Raises
    ``InvalidInput`` where there is no such schema.
    """
    if schema is None:
        yield
        return
    join(connection, can)
    before = connection.execute(_LOOK).scalar_one()
    connection.execute(_SET_QUOTED, {"schema": schema})
    try:
        _check_found(connection, schema)
        yield
    finally:
        with suppress(SQLAlchemyError):  # a transaction that has failed takes it back by itself
            connection.execute(_SET, {"path": before})


def search_path(schema: str) -> str:
    """The statement that does the same in a script, for its transaction."""
    quoted = schema.replace('"', '""')
    return f'SET LOCAL search_path TO "{quoted}"'


def _check_found(connection: Connection, schema: str) -> None:
    if connection.execute(_FOUND).scalar() != schema:
        raise InvalidInput(
            "schema: is not there, or this user may not use it; make it with CREATE SCHEMA, grant "
            "USAGE and CREATE on it, or name another"
        )
