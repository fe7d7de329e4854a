"""Alembic's own command, and a host application that has an Alembic of its own."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, Engine, ForeignKey, Integer, MetaData, String, Table, make_url, text

from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from tests.migrations import support

HOST_CONVENTION = {
    "pk": "host_pk_%(table_name)s",
    "fk": "host_fk_%(table_name)s_%(column_0_name)s",
    "ix": "host_ix_%(column_0_label)s",
    "ck": "host_ck_%(table_name)s_%(constraint_name)s",
    "uq": "host_uq_%(table_name)s_%(column_0_name)s",
}
HOST_ENV = """
from alembic import context
from sqlalchemy import MetaData

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=MetaData(naming_convention=context.config.attributes["convention"]),
    version_table="host_version",
)
with context.begin_transaction():
    context.run_migrations()
"""


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    engine = create_store_engine(sqlite_url)
    yield engine
    engine.dispose()


def run_alembic(*words: str, url: str | None, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "BATCHMILL_DATABASE_URL"}
    if url is not None:
        environment["BATCHMILL_DATABASE_URL"] = url
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(support.TOP / "alembic.ini"), *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def host_tables() -> MetaData:
    """An application's own tables, one of which refers to ours by a plain column."""
    host = MetaData(naming_convention=HOST_CONVENTION)
    Table("account", host, Column("id", Integer, primary_key=True), Column("name", String(40)))
    Table(
        "batch_order",
        host,
        Column("id", Integer, primary_key=True),
        Column("account_id", ForeignKey("account.id"), index=True),
        Column("job_id", String(64)),
    )
    return host


@pytest.mark.checkout
def test_command_upgrades_and_agrees(sqlite_url: str, engine: Engine, tmp_path: Path) -> None:
    """``alembic upgrade head`` with the top-level file, then ``alembic check``, are content."""
    for words in (("upgrade", "head"), ("check",), ("current",)):
        done = run_alembic(*words, url=sqlite_url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert support.HEAD in done.stdout
    migrate.verify(engine)
    assert support.schema_of(engine) == support.kept_schema()


@pytest.mark.checkout
def test_command_goes_down_and_up(sqlite_url: str, engine: Engine, tmp_path: Path) -> None:
    """``alembic downgrade base`` and ``upgrade batchmill@head`` work by name and by label."""
    migrate.upgrade(engine)
    for words in (("downgrade", "base"), ("upgrade", "batchmill@head")):
        done = run_alembic(*words, url=sqlite_url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert support.schema_of(engine) == support.kept_schema()


@pytest.mark.checkout
def test_command_without_a_url(tmp_path: Path) -> None:
    """Without BATCHMILL_DATABASE_URL the database is batchmill.db, here."""
    done = run_alembic("upgrade", "head", url=None, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    engine = create_store_engine(f"sqlite:///{tmp_path / 'batchmill.db'}")
    migrate.verify(engine)
    engine.dispose()


@pytest.mark.checkout
def test_command_takes_a_percent(tmp_path: Path) -> None:
    """A % in BATCHMILL_DATABASE_URL is taken as it is (cases.md S10)."""
    url = f"sqlite:///{tmp_path / 'p%40ss%(here)s.db'}"
    done = run_alembic("upgrade", "head", url=url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = Path(make_url(url).database or "")
    assert made.name.endswith("ss%(here)s.db")
    assert made.stat().st_size > 0


@pytest.mark.checkout
@pytest.mark.parametrize("kind", ["sqlite:///never-made.db", "mariadb://u:p%40ss@h/d"])
def test_command_writes_the_same_sql(kind: str, tmp_path: Path) -> None:
    """``alembic upgrade head --sql`` writes what ``migrate.sql`` returns, and connects nowhere."""
    done = run_alembic("upgrade", "head", "--sql", url=kind, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == migrate.sql(kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("convention", [{}, HOST_CONVENTION], ids=["none", "host's"])
def test_up_down_up_in_a_hosts_alembic(
    convention: dict[str, str], engine: Engine, tmp_path: Path
) -> None:
    """Run by a host's env.py, whatever its naming convention: the same schema (cases.md S11)."""
    (tmp_path / "env.py").write_text(HOST_ENV)
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    config.set_main_option("version_locations", "batchmill.migrations:versions")
    config.set_main_option("path_separator", "newline")
    config.attributes["convention"] = convention
    for _ in range(2):
        in_one_transaction(engine, config, command.upgrade, "batchmill@head")
        made = support.schema_of(engine).split("CREATE TABLE host_version")[0]
        assert made == support.kept_schema().split("CREATE TABLE batchmill_alembic_version")[0]
        in_one_transaction(engine, config, command.downgrade, "base")


def in_one_transaction(engine: Engine, config: Config, run: Any, revision: str) -> None:
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        run(config, revision)


def test_a_hosts_autogenerate_leaves_ours_alone(engine: Engine) -> None:
    """With include_name a host sees no operation on our tables (cases.md 17)."""
    host = host_tables()
    host.create_all(engine)
    migrate.upgrade(engine)
    options = {"target_metadata": host, "include_name": migrate.include_name}
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, host) == []


def test_without_the_filter_a_host_would_drop_ours(engine: Engine) -> None:
    """The filter is what keeps them: without it autogenerate would drop all our tables."""
    host = host_tables()
    host.create_all(engine)
    migrate.upgrade(engine)
    with engine.connect() as connection:
        operations = compare_metadata(MigrationContext.configure(connection), host)
    dropped = {op[1].name for op in operations if op[0] == "remove_table"}
    assert dropped == set(migrate.OUR_TABLES)


@pytest.mark.checkout
def test_our_check_leaves_a_hosts_tables_alone(
    engine: Engine, sqlite_url: str, tmp_path: Path
) -> None:
    """Our own autogenerate sees no operation on a host's tables (cases.md 17)."""
    migrate.upgrade(engine)
    host_tables().create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
    assert support.differences(engine) == []
    done = run_alembic("check", url=sqlite_url, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_filter_knows_tables_only() -> None:
    """The filter speaks of tables: a host's index or column may be named as one of ours."""
    parents: Any = {"table_name": "account"}
    assert not migrate.include_name("batch_job", "table", parents)
    assert not migrate.include_name(migrate.VERSION_TABLE, "table", parents)
    assert migrate.include_name("batch_job", "column", parents)
    assert migrate.include_name("account", "table", parents)
    assert migrate.include_name(None, "schema", parents)


def test_logging_is_left_alone(engine: Engine) -> None:
    """Upgrading from an application adds no handler, sets no level, disables no logger."""
    names = ["", "alembic", "alembic.runtime.migration", "sqlalchemy", "sqlalchemy.engine", "host"]
    before = [logging_state(name) for name in names]
    migrate.upgrade(engine)
    migrate.verify(engine)
    migrate.sql("sqlite://")
    migrate.downgrade(engine, "base")
    assert [logging_state(name) for name in names] == before


def logging_state(name: str) -> tuple[Any, ...]:
    logger = logging.getLogger(name or None)
    return (list(logger.handlers), logger.level, logger.disabled, logger.propagate)


def test_nothing_is_printed(engine: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    """No call writes to stdout or stderr."""
    migrate.upgrade(engine)
    migrate.current(engine)
    migrate.stamp(engine)
    migrate.sql("sqlite://")
    assert capfd.readouterr() == ("", "")


def test_a_new_revision_fits_the_house(engine: Engine, sqlite_url: str, tmp_path: Path) -> None:
    """A revision made from our template is valid Python with our names, and runs."""
    migrate.upgrade(engine)
    config = Config()
    config.set_main_option("script_location", "batchmill.migrations:.")
    config.set_main_option("path_separator", "space")
    config.set_main_option("version_path_separator", "space")  # its name before Alembic 1.16
    config.set_main_option("version_locations", f"batchmill.migrations:versions {tmp_path}")
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        made = command.revision(
            config,
            "a note",
            head="head",
            rev_id="batchmill_9998",
            version_path=str(tmp_path),
            splice=False,
        )
    assert not isinstance(made, list)
    assert made is not None
    source = Path(made.path).read_text()
    assert Path(made.path).name == "batchmill_9998_a_note.py"
    assert source.startswith('"""a note."""')
    compile(source, made.path, "exec")
