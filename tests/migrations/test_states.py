"""What upgrade, verify, current and stamp answer in each state of a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, event, inspect, text

from batchmill.errors import (
    InvalidInput,
    MigrationError,
    NotMigrated,
    SchemaAhead,
    SchemaBehind,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from batchmill.store.models import metadata
from tests.migrations import support


@pytest.fixture(params=["ours", "plain", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An engine of our making, one of an application's, and one in memory; nothing in it yet."""
    path = tmp_path / "state.db"
    made = {
        "ours": lambda: create_store_engine(f"sqlite:///{path}"),
        "plain": lambda: support.plain_engine(path),
        "memory": lambda: create_store_engine("sqlite://"),
    }[request.param]()
    yield made
    assert made.pool.checkedout() == 0  # type: ignore[attr-defined]
    made.dispose()


def set_revision(engine: Engine, revision: str) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = :r"), {"r": revision}
        )


def test_upgrade_then_verify(engine: Engine) -> None:
    """After an upgrade, verify is silent and current is the newest revision."""
    migrate.upgrade(engine)
    migrate.verify(engine)
    assert migrate.current(engine) == support.HEAD


def test_verify_of_an_empty_database(engine: Engine) -> None:
    """Without tables verify says NotMigrated and what to run; current is None."""
    assert migrate.current(engine) is None
    with pytest.raises(NotMigrated, match="upgrade"):
        migrate.verify(engine)
    assert inspect(engine).get_table_names() == []


def test_verify_of_an_older_database(engine: Engine) -> None:
    """Tables of an older batchmill: SchemaBehind, and an upgrade mends it."""
    migrate.upgrade(engine)
    migrate.downgrade(engine, "batchmill_0003")
    with pytest.raises(SchemaBehind, match="upgrade"):
        migrate.verify(engine)
    migrate.upgrade(engine)
    migrate.verify(engine)


def test_verify_of_a_newer_database(engine: Engine) -> None:
    """Tables of a newer batchmill: SchemaAhead asks for a newer package, upgrade does too."""
    migrate.upgrade(engine)
    set_revision(engine, "batchmill_9999")
    with pytest.raises(SchemaAhead, match="pip install"):
        migrate.verify(engine)
    with pytest.raises(SchemaAhead, match="pip install"):
        migrate.upgrade(engine)
    assert migrate.current(engine) == "batchmill_9999"


def test_stamp_for_tables_that_the_models_made(engine: Engine) -> None:
    """Tables made by ``metadata.create_all`` are refused by upgrade, taken after a stamp."""
    metadata.create_all(engine)
    with pytest.raises(MigrationError, match="stamp"):
        migrate.upgrade(engine)
    migrate.stamp(engine)
    migrate.verify(engine)


def test_stamp_of_an_unknown_revision(engine: Engine) -> None:
    """A revision that isn't there can't be noted down."""
    with pytest.raises(MigrationError):
        migrate.stamp(engine, "batchmill_9999")
    assert migrate.current(engine) is None


def test_a_table_that_is_not_ours(engine: Engine) -> None:
    """An application's own table of one of our names is left alone, and named."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE batch_turn (theirs INTEGER)"))
    with pytest.raises(MigrationError, match="batch_turn"):
        migrate.upgrade(engine)
    assert inspect(engine).get_table_names() == ["batch_turn"]


def test_a_table_that_is_not_ours_after_a_downgrade(engine: Engine) -> None:
    """The empty version table that a downgrade leaves doesn't make such a table ours."""
    migrate.upgrade(engine)
    migrate.downgrade(engine, "base")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE batch_job (theirs INTEGER)"))
    with pytest.raises(MigrationError, match="batch_job"):
        migrate.upgrade(engine)


def test_upgrade_in_the_applications_transaction(engine: Engine) -> None:
    """With a Connection nothing is committed: a rollback leaves no trace."""
    with engine.connect() as connection:
        migrate.upgrade(connection)
        migrate.verify(connection)
        connection.rollback()
    assert inspect(engine).get_table_names() == []


def test_upgrade_committed_by_the_application(engine: Engine) -> None:
    """With a Connection our tables come with the application's own, in one commit."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id INTEGER)"))
        migrate.upgrade(connection)
        connection.execute(text("INSERT INTO orders VALUES (7)"))
    migrate.verify(engine)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT id FROM orders")).scalars().all() == [7]


def test_a_failed_step_leaves_nothing(engine: Engine) -> None:
    """When a revision fails, all of the upgrade is undone, and a second one succeeds."""

    @event.listens_for(engine, "before_cursor_execute")
    def refuse(_c: object, _cu: object, statement: str, *_rest: object) -> None:
        if "CREATE TABLE batch_total" in statement:
            raise sqlite3.OperationalError("refused")

    with pytest.raises(StoreError):
        migrate.upgrade(engine)
    event.remove(engine, "before_cursor_execute", refuse)
    assert inspect(engine).get_table_names() == []
    migrate.upgrade(engine)
    migrate.verify(engine)


def test_upgrade_of_a_current_database_takes_no_write_lock(tmp_path: Path) -> None:
    """A replica that starts while another writes for long isn't held up by its upgrade."""
    path = tmp_path / "held.db"
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0.01})
    migrate.upgrade(engine)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    migrate.upgrade(engine)
    writer.close()
    engine.dispose()


def test_upgrade_waits_no_longer_than_its_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that stays locked is reported as StoreBusy, with the driver's error behind it."""
    monkeypatch.setattr(migrate, "PATIENCE", 0.05)
    path = tmp_path / "locked.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0.01})
    with pytest.raises(StoreBusy) as caught:
        migrate.upgrade(engine)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    writer.close()
    engine.dispose()


def test_upgrade_tries_again_while_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that outlasts the engine's own timeout is waited out, within our patience."""
    path = tmp_path / "busy.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("time.sleep", lambda _seconds: writer.close())
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    migrate.upgrade(engine)
    migrate.verify(engine)
    engine.dispose()


def test_looking_creates_no_file(tmp_path: Path) -> None:
    """A look at a file that isn't there says so and doesn't create it."""
    path = tmp_path / "absent.db"
    engine = create_store_engine(f"sqlite:///{path}")
    assert migrate.current(engine) is None
    with pytest.raises(NotMigrated):
        migrate.verify(engine)
    assert not path.exists()


@pytest.mark.parametrize("call", [migrate.upgrade, migrate.verify, migrate.current, migrate.stamp])
@pytest.mark.parametrize("kind", ["no database", "no folder", "read only"])
def test_files_that_cannot_be_used(call: object, kind: str, tmp_path: Path) -> None:
    """A file that is none, a missing folder, a read-only file: one error that shows no path."""
    path = tmp_path / "secret-name.db"
    url = f"sqlite:///{path}"
    if kind == "no database":
        path.write_bytes(b"this is some other file, and it is long enough to be read" * 40)
    elif kind == "no folder":
        url = f"sqlite:///{tmp_path / 'nowhere' / 'secret-name.db'}"
    else:
        sqlite3.connect(path).close()
        url = f"sqlite:///file:{path}?mode=ro&uri=true"
    engine = create_store_engine(url)
    with pytest.raises(StoreUnavailable) as caught:
        call(engine)  # type: ignore[operator]
    engine.dispose()
    assert "secret-name" not in str(caught.value)
    assert isinstance(caught.value.__cause__, sqlite3.Error)


def test_a_percent_in_the_url(tmp_path: Path) -> None:
    """A % in the URL is never taken for interpolation (cases.md S10)."""
    engine = create_store_engine(f"sqlite:///{tmp_path / 'p%40ss%s.db'}")
    migrate.upgrade(engine)
    migrate.verify(engine)
    engine.dispose()


@pytest.mark.parametrize("call", [migrate.upgrade, migrate.verify, migrate.current, migrate.stamp])
def test_neither_engine_nor_connection(call: object) -> None:
    """Anything but an Engine or a Connection is InvalidInput that names the argument."""
    with pytest.raises(InvalidInput, match="engine_or_connection"):
        call("sqlite://")  # type: ignore[operator]


def test_a_schema_on_sqlite(engine: Engine) -> None:
    """SQLite has no schemas: naming one is InvalidInput."""
    with pytest.raises(InvalidInput, match="schema"):
        migrate.upgrade(engine, schema="other")
