"""Alembic's own command, and what a call from an application leaves alone."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import (
    Engine,
    make_url,
)

from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from tests.migrations import support
from tests.migrations.places import Place


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    engine = create_store_engine(sqlite_url)
    yield engine
    engine.dispose()


def run_alembic(
    *words: str, url: str | None, cwd: Path, schema: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BATCHMILL_DATABASE_")}
    if url is not None:
        environment["BATCHMILL_DATABASE_URL"] = url
    if schema is not None:
        environment["BATCHMILL_DATABASE_SCHEMA"] = schema
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(support.TOP / "alembic.ini"), *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def words_of(script: str) -> list[str]:
    """The words of a script; SQLAlchemy 2.0.0 writes a table's options in any order."""
    return sorted(re.findall(r"[^\s();]+", script))


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
@pytest.mark.parametrize("more", [[], ["--sql"]], ids=["online", "offline"])
def test_command_refuses_a_schema_where_there_are_none(
    more: list[str], sqlite_url: str, tmp_path: Path
) -> None:
    """A schema that is named for SQLite is a clear error, and no SQL of PostgreSQL's is tried."""
    words = ["upgrade", "batchmill@head", *more]
    done = run_alembic(*words, url=sqlite_url, cwd=tmp_path, schema="shop")
    assert done.returncode != 0
    assert "schema: this database has no schemas" in done.stderr
    assert "current_setting" not in done.stderr


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
    assert words_of(done.stdout) == words_of(migrate.sql(kind))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.checkout
@pytest.mark.parametrize("place", ["schema", "mariadb"], indirect=True)
def test_command_on_a_server(place: Place, tmp_path: Path) -> None:
    """Alembic's own command upgrades a server's database, a schema too, and writes the same SQL."""
    where: Any = {"url": place.url, "schema": place.schema, "cwd": tmp_path}
    for words in (("upgrade", "head"), ("check",)):
        done = run_alembic(*words, **where)
        assert done.returncode == 0, done.stdout + done.stderr
    place.assert_migrated()
    done = run_alembic("upgrade", "head", "--sql", **where)
    assert words_of(done.stdout) == words_of(migrate.sql(place.url, schema=place.schema))


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
