"""What the command's tests share: a way to call it, a database, a web server with moods."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own, whatever the environment says."""
    monkeypatch.chdir(tmp_path)
    for name in ("BATCHMILL_DATABASE_URL", "COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Call the command in this process: ``invoke("run", "-", stdin="…")``."""
    from batchmill.cli.app import app

    def call(*arguments: str, stdin: str | None = None) -> Any:
        before = list(sys.path)
        try:
            return CliRunner().invoke(app, list(arguments), input=stdin)
        finally:
            sys.path[:] = before

    return call


@pytest.fixture
def db(tmp_path: Path) -> str:
    """The URL of a database that isn't there yet."""
    return f"sqlite:///{tmp_path / 't.db'}"


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command as a process of its own; whatever is left of it is killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "batchmill.cli", *arguments],
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=options.pop("cwd", tmp_path),
            env=os.environ | options.pop("env", {}),
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


class Web:
    """A server on loopback that answers each path as it is told to."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.release = threading.Event()
        web = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                web.asked.append(self.path)
                web.answers[self.path](self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def says(
        self, path: str, body: bytes = b"", status: int = 200, headers: dict[str, str] | None = None
    ) -> str:
        """Answer a path with this; its URL."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)

        return self.does(path, answer)

    def does(self, path: str, answer: Answer) -> str:
        """Answer a path with a function; its URL."""
        self.answers[path] = answer
        return self.url(path)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server on an ephemeral port, closed at the end."""
    server = Web()
    yield server
    server.close()
