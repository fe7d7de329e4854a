"""An API of three routes over batchmill, with nothing but the standard library around it.

    POST   /jobs        {"urls": [...]}   202 with the job's id, 429 when the caller has one running
    GET    /jobs/<id>                     the job and, in order, what has been fetched so far
    DELETE /jobs/<id>                     cancels it

The caller is whoever the header X-Caller names: a real one would be authenticated.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from batchmill import (
    FetchContext,
    InvalidInput,
    Result,
    RetryLater,
    Runner,
    RunnerConfig,
    SubmitRejected,
    Target,
    TargetError,
)
from batchmill.store import BatchRepository, create_store_engine, migrate


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    name: str


def fetch(_context: FetchContext, _caller: Caller, target: Target) -> Result:
    """Fetch one URL; busy servers are tried again later.

    Callers choose the address: one that is reachable from the outside would also refuse those of
    its own network.
    """
    if not target.url.startswith(("http://", "https://")):
        raise TargetError("not a web address", hint="it begins with https://")
    try:
        with urlopen(target.url, timeout=10) as answer:  # noqa: S310 - the scheme is checked
            return Result(answer.read(100_000).decode(errors="replace"), {"status": answer.status})
    except HTTPError as error:
        if error.code in (429, 503):
            raise RetryLater(f"HTTP {error.code}") from None
        raise TargetError(f"HTTP {error.code}", hint="check the address") from None
    except (URLError, ValueError) as error:
        raise TargetError("can't be fetched", hint="is the server up?") from error


class Handler(BaseHTTPRequestHandler):
    """One request; the runner is the server's."""

    server: Server

    def do_POST(self) -> None:
        """Submit: the same list again answers with the same job."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            job_id, reused = self.server.runner.submit(self.caller(), json.loads(body)["urls"])
        except SubmitRejected as error:
            self.answer(429, {"error": str(error)})
        except (InvalidInput, ValueError, KeyError, TypeError):
            self.answer(400, {"error": 'send {"urls": ["https://…"]}'})
        else:
            self.answer(202, {"job": job_id, "reused": reused})

    def do_GET(self) -> None:
        """Poll; reading keeps the job from expiring."""
        report = self.server.runner.status(self.job_id(), caller=self.caller())
        if report is None:
            self.answer(404, {"error": "no such job"})
            return
        self.server.runner.touch(report.job.id)
        results = [
            {"url": each.url, "status": each.status, "error": each.error, "hint": each.hint}
            | ({} if each.result is None else {"content": each.result.content})
            for each in report.targets
        ]
        self.answer(200, {"status": report.job.status, "targets": results})

    def do_DELETE(self) -> None:
        """Cancel."""
        cancelled = self.server.runner.cancel(self.job_id(), caller=self.caller())
        self.answer(200 if cancelled else 404, {"cancelled": cancelled})

    def caller(self) -> Caller:
        """Who asks."""
        return Caller(self.headers.get("X-Caller", "anonymous"))

    def job_id(self) -> str:
        """The last part of the path; what can't be an id is as unknown as any."""
        return self.path.rpartition("/")[2][:64] or "-"

    def answer(self, status: int, value: dict[str, Any]) -> None:
        """JSON."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        """Nothing: a request's path names a job."""


class Server(ThreadingHTTPServer):
    """An HTTP server with a runner."""

    def __init__(self, port: int, runner: Runner[Caller]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.runner = runner


def main() -> None:
    """Serve on a port of the loopback: ``web_api.py [PORT [DATABASE-URL]]``."""
    port, url = [*sys.argv[1:], *["8000", "sqlite:///web_api.db"][len(sys.argv) - 1 :]]
    engine = create_store_engine(url)
    migrate.upgrade(engine)
    config = RunnerConfig(workers=8, worker_limit=8, jobs_total=1000)
    with (
        Runner(BatchRepository(engine), fetch, config) as runner,
        Server(int(port), runner) as server,
    ):
        print(f"http://127.0.0.1:{server.server_port}/jobs", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    engine.dispose()


if __name__ == "__main__":
    main()
