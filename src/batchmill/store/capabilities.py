"""What a database can do: the only place that asks which dialect this is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy.engine import Dialect

from batchmill.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The differences that statements and operations ask for, never a dialect's name.

    ``begins_immediate``: a write transaction takes the one write lock of the file at its start,
    so that nothing read in it can be stale. ``update_returning``: UPDATE hands out what it wrote.
    ``json_each``: a list goes in as one JSON parameter. ``schemas``: tables can live in a schema.
    """

    begins_immediate: bool
    update_returning: bool
    json_each: bool
    schemas: bool


_SQLITE: Final = Capabilities(
    begins_immediate=True, update_returning=True, json_each=True, schemas=False
)
_SQLITE_LEAST: Final = (3, 35, 0)


def capabilities_of(dialect: Dialect) -> Capabilities:
    """The capabilities behind a dialect; raises ``InvalidInput`` for one that is not supported."""
    if dialect.name == "sqlite":
        _check_sqlite(dialect)
        return _SQLITE
    raise InvalidInput(
        f"engine: the database {dialect.name!r} is not supported by this version; use SQLite"
    )


def _check_sqlite(dialect: Dialect) -> None:
    version = getattr(getattr(dialect, "dbapi", None), "sqlite_version_info", _SQLITE_LEAST)
    if tuple(version) < _SQLITE_LEAST:
        found = ".".join(map(str, version))
        raise InvalidInput(f"engine: SQLite {found} is too old; 3.35 or newer is needed")
