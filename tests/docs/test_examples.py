"""The examples run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytestmark = pytest.mark.checkout

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[str]:
    """The address of the example's server, which ends with the test."""
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "web_api.py"), "0", f"sqlite:///{tmp_path / 'api.db'}"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=os.environ,
    )
    assert process.stdout is not None
    with process:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)
        process.wait(20)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A web server of files on the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _ask(address: str, method: str = "GET", body: object = None, caller: str = "ada") -> tuple:
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"X-Caller": caller}, method=method)
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())


def test_the_web_api_takes_polls_and_hides_jobs(api: str, site: str, tmp_path: Path) -> None:
    """A list is taken at once, worked off, read by its caller, and unknown to anybody else."""
    (tmp_path / "page.txt").write_text("a page", encoding="utf-8")
    urls = {"urls": [f"{site}/page.txt", f"{site}/none.txt", f"file://{tmp_path}/page.txt"]}
    status, taken = _ask(api, "POST", urls)
    assert (status, taken["reused"]) == (202, False)
    assert _ask(api, "POST", urls) == (202, {"job": taken["job"], "reused": True})
    address = f"{api}/{taken['job']}"
    report: dict = {"status": "queued"}
    for _ in range(1000):
        _, report = _ask(address)
        if report["status"] == "partial":
            break
    assert [each["status"] for each in report["targets"]] == ["done", "failed", "failed"]
    assert report["targets"][0]["content"] == "a page"
    assert _ask(address, caller="eve") == (404, {"error": "no such job"})
    assert _ask(address, "DELETE") == (404, {"cancelled": False})
    assert _ask(api, "POST", {"lists": []})[0] == 400
