"""What a database can do: the only place that asks which dialect this is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy.engine import Dialect

from batchmill.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The differences that statements and operations ask for, never a dialect's name.

    ``begins_immediate``: a write transaction takes the one write lock of the file at its start, so
    that nothing read in it can be stale. ``bare_statements``: the driver may run statements past
    SQLAlchemy. ``lossy``: the connection to the database can be lost. ``pipelines``: the driver
    sends several statements in one round trip. ``hints``: the planner is told which index to use,
    and the order of a join. ``row_locks``: SELECT … FOR UPDATE, with SKIP LOCKED. ``locks_of``:
    such a lock can name the one table of a join that it is for. ``stale_reads``: a plain SELECT in
    a transaction may see an older state than a locking one. ``update_returning``: UPDATE hands out
    what it wrote. ``upserts``: INSERT … ON CONFLICT spares a round trip. ``lists``: how a list goes
    in as one parameter. ``sequences``: turn numbers come from a sequence, not from a counter.
    ``shards``: how many rows the byte total is spread over. ``pushes``: NOTIFY tells other sessions
    of a commit. ``snapshots``: under REPEATABLE READ and above even a locking read sees the state
    of the transaction's beginning. ``encoding``: what the driver calls the encoding of texts that
    holds them all, None where there is one only. ``packet_limit``: SQL for the most bytes that a
    statement may have, None where it may have any number. ``schemas``: tables can live in a
    schema, which a search path picks. ``needs_database``: a URL has to name one. ``clock``: SQL
    for the database's own time, None where it is this host's. ``ddl_rolls_back``: DDL is undone
    with its transaction; where it isn't, it commits it. ``named_lock``, ``named_unlock``: SQL
    that tries to take the lock of migrations, answering 1 or true when it has, and that gives
    it back where it outlives the transaction. ``short_waits``, ``usual_waits``: SQL that keeps
    DDL from waiting long for whoever uses a table, and that takes this back where it outlives
    the transaction.
    """

    begins_immediate: bool
    bare_statements: bool
    lossy: bool
    pipelines: bool
    hints: bool
    row_locks: bool
    locks_of: bool
    stale_reads: bool
    update_returning: bool
    upserts: bool
    lists: Literal["json", "array", "tuple"]
    sequences: bool
    shards: int
    pushes: bool
    snapshots: bool
    encoding: str | None
    packet_limit: str | None
    schemas: bool
    needs_database: bool
    clock: str | None
    ddl_rolls_back: bool
    named_lock: str | None
    named_unlock: str | None
    short_waits: str | None
    usual_waits: str | None


_SQLITE: Final = Capabilities(
    begins_immediate=True,
    bare_statements=True,
    lossy=False,
    pipelines=False,
    hints=False,
    row_locks=False,
    locks_of=False,
    stale_reads=False,
    update_returning=True,
    upserts=False,
    lists="json",
    sequences=False,
    shards=1,
    pushes=False,
    snapshots=False,
    encoding=None,
    packet_limit=None,
    schemas=False,
    needs_database=False,
    clock=None,
    ddl_rolls_back=True,
    named_lock=None,
    named_unlock=None,
    short_waits=None,
    usual_waits=None,
)
_POSTGRESQL: Final = Capabilities(
    begins_immediate=False,
    bare_statements=True,
    lossy=True,
    pipelines=True,
    hints=False,
    row_locks=True,
    locks_of=True,
    stale_reads=False,
    update_returning=True,
    upserts=True,
    lists="array",
    sequences=True,
    shards=8,
    pushes=True,
    snapshots=True,
    encoding="utf-8",
    packet_limit=None,
    schemas=True,
    needs_database=False,
    clock="SELECT extract(epoch FROM clock_timestamp())",
    ddl_rolls_back=True,
    # A database and a schema each have a lock of their own; the key is a number, so a hash.
    named_lock="SELECT pg_try_advisory_xact_lock("
    "hashtextextended('batchmill ' || coalesce(current_schema(), ''), 0))",
    named_unlock=None,
    short_waits="SET LOCAL lock_timeout = 5000",
    usual_waits=None,
)
_MARIADB: Final = Capabilities(
    begins_immediate=False,
    bare_statements=True,
    lossy=True,
    pipelines=False,
    hints=True,
    row_locks=True,
    locks_of=False,
    stale_reads=True,
    update_returning=False,
    upserts=False,
    lists="tuple",
    sequences=True,
    shards=8,
    pushes=False,
    snapshots=False,
    encoding="utf8mb4",
    packet_limit="SELECT @@max_allowed_packet",
    schemas=False,
    needs_database=True,
    clock="SELECT unix_timestamp(sysdate(6))",
    ddl_rolls_back=False,
    # The lock is the server's; its name may not be as long as a database's can be.
    named_lock="SELECT get_lock(concat('batchmill ', md5(database())), 0)",
    named_unlock="SELECT release_lock(concat('batchmill ', md5(database())))",
    short_waits="SET @batchmill_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 5",
    usual_waits="SET SESSION lock_wait_timeout = @batchmill_wait",
)
_KINDS: Final = {
    "sqlite": _SQLITE,
    "postgresql": _POSTGRESQL,
    "mariadb": _MARIADB,
    "mysql": _MARIADB,
}
_SQLITE_LEAST: Final = (3, 35, 0)


def capabilities_of(dialect: Dialect) -> Capabilities:
    """The capabilities behind a dialect; raises ``InvalidInput`` for one that is not supported."""
    if dialect.name == "sqlite":
        _check_sqlite(dialect)
        return replace(_SQLITE, bare_statements=dialect.driver == "pysqlite")
    if (dialect.name, dialect.driver) == ("postgresql", "psycopg"):
        return replace(_POSTGRESQL, pipelines=_has_pipelines(dialect))
    if (dialect.name, dialect.driver) in {("mariadb", "pymysql"), ("mysql", "pymysql")}:
        return _MARIADB
    raise InvalidInput(
        f"engine: {dialect.name} with the driver {dialect.driver} is not supported; use SQLite, "
        "PostgreSQL with psycopg 3, or MariaDB with PyMySQL"
    )


def capabilities_of_kind(name: str) -> Capabilities:
    """The capabilities of a kind of database, whatever its driver; raises ``InvalidInput``."""
    if name not in _KINDS:
        raise InvalidInput(
            f"url: {name} databases are not supported; use SQLite, PostgreSQL or MariaDB"
        )
    return _KINDS[name]


def _has_pipelines(dialect: Any) -> bool:
    """Whether psycopg, and the libpq under it, are new enough for pipelines."""
    pipeline = getattr(getattr(dialect, "loaded_dbapi", None), "Pipeline", None)
    return pipeline is not None and bool(pipeline.is_supported())


def _check_sqlite(dialect: Any) -> None:
    version = getattr(getattr(dialect, "dbapi", None), "sqlite_version_info", _SQLITE_LEAST)
    if tuple(version) < _SQLITE_LEAST:
        found = ".".join(map(str, version))
        raise InvalidInput(f"engine: SQLite {found} is too old; 3.35 or newer is needed")
