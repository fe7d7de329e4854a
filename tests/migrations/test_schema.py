"""Models, revisions, offline SQL and the kept dump all say the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from batchmill.errors import InvalidInput, MigrationError
from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from batchmill.store.models import metadata
from tests.migrations import support


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    engine = create_store_engine(sqlite_url)
    yield engine
    engine.dispose()


def test_autogenerate_finds_no_difference(engine: Engine) -> None:
    """After an upgrade, autogenerate sees nothing to do to fit the models."""
    migrate.upgrade(engine)
    assert support.differences(engine) == []


def test_autogenerate_would_find_a_difference(engine: Engine) -> None:
    """The comparison isn't blind: a dropped index is found."""
    migrate.upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX batch_turn_home_ix"))
    assert len(support.differences(engine)) == 1


def test_revisions_make_what_the_models_make(engine: Engine, tmp_path: Path) -> None:
    """The schema after an upgrade is, to the letter, the one of ``metadata.create_all``."""
    migrate.upgrade(engine)
    other = create_store_engine(f"sqlite:///{tmp_path / 'models.db'}")
    metadata.create_all(other)
    made = support.schema_of(other)
    other.dispose()
    assert support.schema_of(engine, version_table=False) == made


def test_schema_is_the_kept_one(engine: Engine) -> None:
    """The schema is the one kept in schema/sqlite.sql, CHECKs and defaults included."""
    migrate.upgrade(engine)
    assert support.schema_of(engine) == support.kept_schema()


def test_up_down_up(engine: Engine) -> None:
    """Up, down and up again gives the same schema, and down leaves none of our tables."""
    migrate.upgrade(engine)
    first = support.schema_of(engine)
    migrate.downgrade(engine, "base")
    assert support.schema_of(engine, version_table=False) == ""
    assert migrate.current(engine) is None
    migrate.upgrade(engine)
    assert support.schema_of(engine) == first


@pytest.mark.parametrize("number", range(1, 7))
def test_each_revision_can_be_taken_back(engine: Engine, number: int) -> None:
    """Each revision by itself goes down and up again."""
    migrate.upgrade(engine)
    migrate.downgrade(engine, f"batchmill_{number:04}")
    assert migrate.current(engine) == f"batchmill_{number:04}"
    migrate.upgrade(engine)
    assert support.schema_of(engine) == support.kept_schema()


def test_first_total_is_there_and_zero(engine: Engine) -> None:
    """An upgrade leaves the shards of the byte total, and the rows that serve as locks, at zero."""
    migrate.upgrade(engine)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT shard, nbytes, turns FROM batch_total")).all()
    assert sorted(tuple(row) for row in rows) == [(shard, 0, 0) for shard in range(-2, 8)]


def test_offline_sql_makes_the_same_schema() -> None:
    """What ``sql`` writes for SQLite, run by the sqlite3 driver alone, gives the kept schema."""
    assert support.schema_of_script(migrate.sql("sqlite://")) == support.kept_schema()


def test_offline_sql_from_a_revision_on() -> None:
    """``sql`` from one revision to another holds only what lies between."""
    script = migrate.sql("sqlite://", start="batchmill_0003", end="batchmill_0004")
    assert "CREATE TABLE batch_runner" in script
    assert "batch_job" not in script


@pytest.mark.parametrize("url", ["postgresql://", "postgresql+psycopg://user:s%40cret@host/x"])
def test_offline_sql_for_postgresql(url: str) -> None:
    """On PostgreSQL names compare by bytes, and all is one transaction."""
    script = migrate.sql(url)
    assert 'caller VARCHAR(255) COLLATE "C" NOT NULL' in script
    assert script.startswith("BEGIN;")
    assert script.rstrip().endswith("COMMIT;")
    assert "cret" not in script


def test_offline_sql_for_mariadb() -> None:
    """On MariaDB text is LONGTEXT that compares by bytes, and a step can be run again."""
    script = migrate.sql("mariadb://")
    assert "result LONGTEXT COLLATE utf8mb4_nopad_bin" in script
    assert "caller VARCHAR(255) COLLATE utf8mb4_nopad_bin NOT NULL" in script
    assert script.count("CREATE TABLE IF NOT EXISTS batch_") == len(metadata.tables)
    assert script.count("CREATE INDEX ") == script.count("CREATE INDEX IF NOT EXISTS ")


@pytest.mark.parametrize("url", ["", "nonsense", "nosuch://x:secret@y/z"])
def test_offline_sql_for_no_database(url: str) -> None:
    """A URL of no kind that is known is refused, and never shown."""
    with pytest.raises(InvalidInput, match=r"^url: ") as caught:
        migrate.sql(url)
    assert "secret" not in str(caught.value)


def test_offline_sql_of_an_unknown_revision() -> None:
    """A revision that isn't there is an error of our tree."""
    with pytest.raises(MigrationError):
        migrate.sql("sqlite://", end="batchmill_9999")


def test_all_names_are_ours(engine: Engine) -> None:
    """Every table and index carries a prefixed name, none a generated one."""
    migrate.upgrade(engine)
    with engine.connect() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master")).scalars().all()
    ours = [n for n in names if not n.startswith("sqlite_autoindex_")]
    assert ours
    assert all(n.startswith(("batch_", "batchmill_")) for n in ours)
