"""Alembic, run by batchmill: one run at a time, no file read, nothing of a host's disturbed."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import alembic.context
import alembic.op
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection
from sqlalchemy.engine import URL

from batchmill.errors import MigrationError

_LOCATION: Final = "batchmill.migrations:."

# Alembic keeps what it is doing in module globals. Taken last, after the database's lock: who
# waits for this lock never keeps its holder from finishing.
_ALEMBIC: Final = threading.RLock()


def run_on(connection: Connection, run: Callable[[Config, str], object], revision: str) -> None:
    """Run one of Alembic's commands on a connection; raises ``MigrationError``."""
    with _alone():
        run(_config(connection=connection), revision)


def write_sql(url: URL, schema: str | None, start: str, end: str) -> str:
    """The SQL of an upgrade for this kind of database; raises ``MigrationError``."""
    config = _config(url=url, schema=schema)
    config.output_buffer = text = io.StringIO()
    with _alone():
        command.upgrade(config, f"{start}:{end}", sql=True)
    return text.getvalue()


def head() -> str:
    """The newest revision."""
    return str(_scripts()["head"])


def known_revisions() -> Collection[str]:
    """Every revision."""
    return frozenset(_scripts()["known"])


@cache
def _scripts() -> Mapping[str, Any]:
    with _ALEMBIC:
        scripts = ScriptDirectory.from_config(_config())
        return {
            "head": scripts.get_current_head(),
            "known": [s.revision for s in scripts.walk_revisions()],
        }


@contextmanager
def _alone() -> Iterator[None]:
    """Alembic to ourselves, its own errors as ours."""
    with _ALEMBIC, _hosts_run_kept():
        try:
            yield
        except CommandError as error:
            raise MigrationError(f"the migration could not be run: {error}") from error


@contextmanager
def _hosts_run_kept() -> Iterator[None]:
    """Put back the run that an application's ``env.py`` or revision called us from.

    Alembic's modules ``context`` and ``op`` know one run, and forget it when ours has ended. There
    is no public way to see which one.
    """
    before = [getattr(module, "_proxy", None) for module in (alembic.context, alembic.op)]
    try:
        yield
    finally:
        for proxy in before:
            if proxy is not None:
                proxy._install_proxy()  # noqa: SLF001


def _config(**attributes: Any) -> Config:
    """A configuration that reads no file, so that it sets up no logging and interpolates no URL."""
    config = Config(stdout=io.StringIO(), attributes=attributes)
    config.set_main_option("script_location", _LOCATION)
    config.set_main_option("path_separator", "os")
    return config
