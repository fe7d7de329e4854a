"""What the tests of the migrations share: a schema as text, and the file that keeps it."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, text

from batchmill.store import migrate

TOP = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "schema"
HEAD = "batchmill_0007"
PLAIN = "sqlite:///{}"


def schema_of(engine: Engine, *, version_table: bool = True) -> str:
    """Every table and index as SQL, in one spelling, sorted by name."""
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        ).all()
    return _text([(n, s) for n, s in rows if version_table or n != migrate.VERSION_TABLE])


def schema_of_script(script: str) -> str:
    """The schema that a SQL script makes, executed by the driver alone."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(script)
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).fetchall()
    finally:
        connection.close()
    return _text(rows)


def kept_schema(kind: str = "sqlite") -> str:
    """The schema as it was last looked at, without the comment lines."""
    name = f"{kind}.sql" if kind == "sqlite" else f"{kind}.txt"
    lines = (KEPT / name).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("--"))


def differences(engine: Engine) -> list[object]:
    """What autogenerate would do to make the database fit the models."""
    options = migrate.environment_options(engine.dialect.name)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, options["target_metadata"]))


def plain_engine(path: Path) -> Engine:
    """An engine as an application makes it, with none of our settings."""
    return create_engine(PLAIN.format(path))


def _text(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{_one_spelling(sql)};\n" for _, sql in rows)


def _one_spelling(sql: str) -> str:
    """One item a line; constraints sorted, for their order means nothing."""
    if not sql.startswith("CREATE TABLE"):
        return re.sub(r"\s+", " ", sql)
    head, inner = sql.split("(", 1)
    inner, tail = inner.rsplit(")", 1)
    items = [re.sub(r"\s+", " ", item).strip(" ,") for item in inner.split("\n")]
    columns = [item for item in items if item and not item.startswith("CONSTRAINT")]
    constraints = sorted(item for item in items if item.startswith("CONSTRAINT"))
    return f"{head}(\n    " + ",\n    ".join(columns + constraints) + f"\n){tail}"
