"""Servers that a test stops, kills and starts again, each on an address and data of its own."""

from __future__ import annotations

import abc
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.database import Database
from tests.support.servers import (
    LOOPBACK,
    STARTS_WITHIN,
    free_port,
    installed,
    mariadb_programs,
    postgresql_wheel,
)


class Server(abc.ABC):
    """A server's data, and the process that serves it while there is one.

    ``inside`` are the words before its command, for a network namespace say.
    """

    def __init__(self, *, host: str = LOOPBACK, port: int = 0, inside: Sequence[str] = ()) -> None:
        self._require()  # before there is anything to leave behind
        self.host, self.port = host, port or free_port()
        self._inside = list(inside)
        # Not in pytest's own: another run of it shuts that for the user that a server is run by.
        self.folder = Path(tempfile.mkdtemp(prefix="batchmill-server-"))
        self.folder.chmod(0o755)
        self._log = self.folder / "log"
        self.data = self.folder / "data"
        self.data.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    @abc.abstractmethod
    def _require(self) -> None:
        """Skip the test, or fail it, where the database isn't installed."""

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Of a database that is there."""

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """What serves the data, in the foreground."""

    @abc.abstractmethod
    def answers(self) -> bool:
        """Whether it takes connections."""

    @abc.abstractmethod
    def database(self) -> Database:
        """A new, migrated database on it."""

    _killed_by = signal.SIGKILL

    def start(self) -> None:
        """Start it; it takes connections afterwards."""
        with self._log.open("ab") as log:
            self._process = process = subprocess.Popen(
                [*self._inside, *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + STARTS_WITHIN
        while not self.answers():
            assert process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.02)

    def revive(self) -> None:
        """Start it if a test that failed has left it dead."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        """End it in the middle of whatever it does; what was committed stays."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(self._killed_by)
            process.wait(STARTS_WITHIN)

    def close(self) -> None:
        """End it, and take its data away."""
        self.kill()
        shutil.rmtree(self.folder)


class PostgresqlServer(Server):
    """PostgreSQL, the wheel's."""

    _killed_by = signal.SIGQUIT  # its "immediate": like a crash, but no process is left behind

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = postgresql_wheel().PostgresServer(self.data)
            made.ensure_pgdata_inited()
        self._program, self._user = made.bin_path / "postgres", made.system_user
        if self.host != LOOPBACK:
            with (self.data / "pg_hba.conf").open("a") as file:
                file.write("host all all samenet trust\n")

    def _require(self) -> None:
        postgresql_wheel()

    def _command(self) -> list[str]:
        user = [f"--reuid={self._user}", f"--regid={self._user}", "--clear-groups"]
        return [
            *(["setpriv", *user] if self._user else []),
            str(self._program),
            f"-D{self.data}",
            f"-p{self.port}",
            f"-clisten_addresses={self.host}",
            "-cunix_socket_directories=",
            "-cmax_connections=200",
        ]

    @property
    def url(self) -> str:
        """See :class:`Server`."""
        return f"postgresql://postgres@{self.host}:{self.port}/postgres"

    def answers(self) -> bool:
        """See :class:`Server`."""
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def database(self) -> Database:
        """See :class:`Server`."""
        from tests.support.postgresql import PostgresqlDatabase

        return PostgresqlDatabase(self.url, hurried=False)


class MariadbServer(Server):
    """MariaDB, where it is installed."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._words = installed(self.folder, self.data)
        (self.folder / "setup.sql").write_text(
            "CREATE DATABASE IF NOT EXISTS batchmill CHARACTER SET latin1;\n"
            "CREATE USER IF NOT EXISTS mill IDENTIFIED BY 'mill';\n"
            "GRANT ALL ON *.* TO mill;\n",
            encoding="utf-8",
        )

    def _require(self) -> None:
        mariadb_programs()

    def _command(self) -> list[str]:
        return [*self._words, f"--port={self.port}", f"--bind-address={self.host}"]

    @property
    def url(self) -> str:
        """See :class:`Server`."""
        return f"mariadb://mill:mill@{self.host}:{self.port}/batchmill"

    def answers(self) -> bool:
        """See :class:`Server`."""
        import pymysql

        try:
            pymysql.connect(
                host=self.host,
                port=self.port,
                user="mill",
                password="mill",
                database="batchmill",
                connect_timeout=2,
            ).close()
        except pymysql.MySQLError:
            return False
        return True

    def database(self) -> Database:
        """See :class:`Server`."""
        from tests.support.mariadb import MariadbDatabase

        return MariadbDatabase(self.url, hurried=False)


KINDS: dict[str, type[Server]] = {"postgresql": PostgresqlServer, "mariadb": MariadbServer}
EACH = list(KINDS)


@contextmanager
def running(kind: str, **given: Any) -> Iterator[Server]:
    """A server of a test's own, started; it is ended afterwards."""
    server = KINDS[kind](**given)
    try:
        server.start()
        yield server
    finally:
        server.close()
