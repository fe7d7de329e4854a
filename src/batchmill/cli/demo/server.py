"""A web server on loopback whose documents are real and whose moods are on purpose.

``/name`` serves a document, ``/slow/name`` takes its time, ``/busy/name`` answers 503 twice
before it works, ``/broken/name`` breaks off half-way, and anything else is a 404.
"""

from __future__ import annotations

import mimetypes
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

BUSY_ANSWERS: Final = 2
_SLOW: Final = 4.0
"""A slow document takes so many times as long as another."""


class DemoServer:
    """Serves while entered; ``pace`` is how long an answer takes, in seconds."""

    def __init__(self, documents: Mapping[str, bytes], pace: float) -> None:
        self.documents = documents
        self.pace = pace
        self.closing = threading.Event()
        self._served: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.demo = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.daemon = True

    @property
    def address(self) -> str:
        """What a document's name is appended to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def times_asked(self, path: str) -> int:
        """How often a path was asked for, this time included."""
        with self._lock:
            self._served[path] += 1
            return self._served[path]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    demo: DemoServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] # none but it makes these
    timeout = 5

    def do_GET(self) -> None:
        """Answer in the mood that the path asks for."""
        demo = self.server.demo
        mood, _, rest = self.path.lstrip("/").rpartition("/")
        body = demo.documents.get(rest)
        demo.closing.wait(demo.pace * (_SLOW if mood == "slow" else 1.0))
        if body is None or mood not in {"", "slow", "busy", "broken"}:
            self._answer(404, b"nothing here")
        elif mood == "busy" and demo.times_asked(self.path) <= BUSY_ANSWERS:
            self._answer(503, b"busy", {"Retry-After": "1"})
        else:
            sent = body[: len(body) // 2] if mood == "broken" else body
            self._answer(200, sent, {"Content-Length": str(len(body))})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        kind = mimetypes.guess_type(self.path)[0] or "text/plain"
        given = {"Content-Length": str(len(body)), "Content-Type": f"{kind}; charset=utf-8"}
        self.send_response(status)
        for name, value in (given | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """The demo tells what happens; the server is quiet."""
