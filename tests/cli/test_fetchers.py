from __future__ import annotations

import base64
import os
import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from batchmill.cli.fetchers import FetchLimits, WebFetcher, fetch
from batchmill.errors import RetryLater, TargetError
from batchmill.runner import FetchContext, Target


def _context(*, cancelled: bool = False) -> FetchContext:
    context = FetchContext("job", 0, 1, threading.Condition())
    if cancelled:
        context.cancel()
    return context


def _fetched(url, *, limits=None, transport=None, context=None):
    with WebFetcher(limits, transport=transport) as fetcher:
        return fetcher(context or _context(), None, Target(url))


def _failed(url, **options) -> TargetError:
    with pytest.raises(TargetError) as caught:
        _fetched(url, **options)
    error = caught.value
    assert error.message
    assert error.hint
    return error


def test_a_page_is_its_text_with_what_the_server_said_of_it(web):
    """A text comes as text, decoded by its charset, with status, type and bytes in meta."""
    url = web.says(
        "/a", "é".encode("latin-1"), headers={"Content-Type": "text/html; charset=ISO-8859-1"}
    )
    result = _fetched(url)
    assert result.content == "é"
    assert result.meta == {
        "status": 200,
        "bytes": 1,
        "content_type": "text/html",
        "encoding": "iso-8859-1",
    }


def test_a_picture_comes_in_base64(web):
    """What isn't text is kept byte for byte, in base64, and meta says so."""
    result = _fetched(web.says("/p", b"\x89PNG\xff", headers={"Content-Type": "image/png"}))
    assert base64.b64decode(result.content) == b"\x89PNG\xff"
    assert result.meta["encoding"] == "base64"


def test_bytes_of_no_type_are_text_when_they_read_as_text(web):
    """Without a type, UTF-8 is text and anything else base64."""
    assert _fetched(web.says("/t", "naïve".encode())).content == "naïve"
    assert _fetched(web.says("/b", b"\xff\xfe")).meta["encoding"] == "base64"


@pytest.mark.parametrize("charset", ["utf-8", "no-such", "undefined", "base64"])
def test_a_page_that_lies_about_its_charset_is_still_text(web, charset):
    """Wrong bytes, or a charset that isn't one, are replaced, and meta says so."""
    url = web.says("/a", b"a\xffb", headers={"Content-Type": f"text/plain; charset={charset}"})
    result = _fetched(url)
    assert result.content == "a\N{REPLACEMENT CHARACTER}b"
    assert "replacements" in result.meta["encoding"]


def test_a_redirect_is_followed_and_told(web):
    """The page at the end of a redirect is the result; meta has its address."""
    web.says("/to", b"here")
    url = web.says("/from", status=302, headers={"Location": "/to"})
    result = _fetched(url)
    assert result.content == "here"
    assert result.meta["url"] == web.url("/to")


def test_redirects_in_a_circle_fail(web):
    """A redirect without an end is a failure with a hint."""
    url = web.says("/round", status=302, headers={"Location": "/round"})
    assert "redirects" in _failed(url).message


def test_a_redirect_to_a_file_is_not_followed(web, tmp_path):
    """A server can't make the fetcher read this machine's files."""
    (tmp_path / "secret").write_text("secret")
    url = web.says("/f", status=302, headers={"Location": f"file://{tmp_path}/secret"})
    assert "URL" in _failed(url).message


@pytest.mark.parametrize(("status", "word"), [(404, "Not Found"), (500, "Internal"), (418, "418")])
def test_a_bad_status_fails_with_status_and_hint(web, status, word):
    """Any status but success, 429 and 503 fails the target and is kept as its status."""
    error = _failed(web.says("/x", status=status))
    assert error.status == status
    assert word in error.message


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_tried_again_when_it_asked_to(web, status):
    """429 and 503 are retry-later, after the seconds of Retry-After."""
    with pytest.raises(RetryLater) as caught:
        _fetched(web.says("/x", status=status, headers={"Retry-After": "7"}))
    assert caught.value.after == 7.0


def test_retry_after_may_be_a_date(web):
    """A Retry-After date counts from the answer's own Date, whatever this clock says."""
    then = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)

    def answer(request):
        headers = {
            "Date": format_datetime(then, usegmt=True),
            "Retry-After": format_datetime(then + timedelta(seconds=90), usegmt=True),
        }
        return httpx.Response(503, headers=headers)

    with pytest.raises(RetryLater) as caught:
        _fetched("http://h/", transport=httpx.MockTransport(answer))
    assert caught.value.after == 90.0


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "²", "Wed, 99 Foo 2001"])
def test_a_retry_after_that_cannot_be_read_is_left_out(web, value):
    """A broken Retry-After leaves the pause to the runner."""

    def answer(request):
        return httpx.Response(503, headers={"Retry-After": value.encode("utf-8")})

    with pytest.raises(RetryLater) as caught:
        _fetched("http://h/", transport=httpx.MockTransport(answer))
    assert caught.value.after is None


def test_a_body_over_the_limit_is_refused_before_it_is_read(web):
    """An announced length over the limit fails at once."""
    url = web.says("/big", b"x" * 2000)
    assert "larger than 1000 B" in _failed(url, limits=FetchLimits(5, 1000)).message


def test_a_body_that_grows_over_the_limit_is_cut_off(web):
    """A length that isn't announced is held to the limit while reading."""

    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"x" * 2000)

    assert "larger" in _failed(web.does("/big", answer), limits=FetchLimits(5, 1000)).message


def test_a_small_packed_body_cannot_unpack_past_the_limit(web):
    """The limit is on the unpacked bytes."""
    import gzip

    body = gzip.compress(b"0" * 100_000)
    url = web.says("/z", body, headers={"Content-Encoding": "gzip"})
    assert "larger" in _failed(url, limits=FetchLimits(5, 1000)).message


def test_a_server_that_breaks_off_is_a_failure(web):
    """A body shorter than announced fails, and says how much had come."""
    url = web.says("/half", b"half", headers={"Content-Length": "8"})
    assert "broke off after 4 B" in _failed(url).message


def test_a_garbled_body_is_a_failure(web):
    """A Content-Encoding that the body doesn't have fails with a hint."""
    url = web.says("/g", b"not gzip", headers={"Content-Encoding": "gzip"})
    assert "garbled" in _failed(url).message


def test_a_server_that_says_nothing_times_out(web):
    """No answer within the timeout fails the target."""
    url = web.does("/silent", lambda handler: web.release.wait(10) and None)
    assert "in time" in _failed(url, limits=FetchLimits(0.2, 1000)).message


def test_a_server_that_trickles_is_held_to_the_timeout(web):
    """Bytes that keep coming don't stretch the timeout of the whole."""

    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            if web.release.wait(0.05):
                return

    error = _failed(web.does("/slow", answer), limits=FetchLimits(1.0, 1000))
    assert "not finished after 1 s" in error.message


def test_a_cancelled_fetch_stops_while_it_reads(web):
    """Once the job is cancelled the fetch ends early, as something to be tried again."""
    with pytest.raises(RetryLater, match="stopped"):
        _fetched(web.says("/a", b"text"), context=_context(cancelled=True))


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_says_so_without_the_url():
    """Nobody listening: the text says it, and holds no password of the URL."""
    error = _failed(f"http://user:hunter2@127.0.0.1:{_closed_port()}/x")
    assert error.message == "connection refused"
    assert "hunter2" not in error.message + error.hint


def test_an_unknown_host_says_so():
    """A name that doesn't resolve is told as that."""

    def answer(request):
        raise httpx.ConnectError("no") from socket.gaierror(-2, "Name or service not known")

    error = _failed("http://nowhere.invalid/", transport=httpx.MockTransport(answer))
    assert error.message == "no such host"


@pytest.mark.parametrize(
    "url", ["", "README.md", "ftp://h/x", "mailto:a@b", "http://", "http://[::1", "http://a b/\x7f"]
)
def test_what_cannot_be_fetched_says_what_can(url):
    """Another scheme, none, or a broken URL fails with a hint that shows a right one."""
    error = _failed(url)
    assert "://" in error.hint or "file URL" in error.hint
    assert error.hint.isprintable()


def test_a_file_is_read_off_the_disk(tmp_path):
    """A file URL is percent-decoded; the content of a text file is its text."""
    (tmp_path / "ü b.md").write_text("# hello\n")
    result = _fetched((tmp_path / "ü b.md").as_uri())
    assert result.content == "# hello\n"
    assert result.meta["bytes"] == 8
    assert result.meta["content_type"] == "text/markdown"
    assert _fetched(f"file://localhost{tmp_path}/%C3%BC%20b.md").content == "# hello\n"


def test_a_binary_file_comes_in_base64(tmp_path):
    """A file that doesn't read as text comes in base64, whatever its name."""
    (tmp_path / "x.txt").write_bytes(b"\xff\x00")
    assert _fetched((tmp_path / "x.txt").as_uri()).meta["encoding"] == "base64"


def test_files_that_cannot_be_read_say_why(tmp_path):
    """A missing file, a folder, a pipe, a host, a NUL, a large one: each has its own text."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b"x" * 2000)
    said = {
        f"file://{tmp_path}/nope": "no such file",
        f"file://{tmp_path}": "is a directory",
        f"file://{tmp_path}/pipe": "not a regular file",
        "file:///dev/zero": "not a regular file",
        "file://README.md": "three slashes",
        "file:README.md": "whole path",
        "file:///a%00b": "can't read",
        f"file://{tmp_path}/{'x' * 300}": "can't read",
    }
    for url, text in said.items():
        assert text in _failed(url).message, url
    assert "larger" in _failed(f"file://{tmp_path}/big", limits=FetchLimits(5, 1000)).message


def test_one_client_serves_many_threads(web):
    """One fetcher may be called from several threads at once."""
    url = web.says("/a", b"text")
    found: list[str] = []
    with WebFetcher() as fetcher:
        threads = [
            threading.Thread(
                target=lambda: found.append(fetcher(_context(), None, Target(url)).content)
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["text"] * 8


def test_the_fetcher_of_a_worker_is_a_plain_function(web):
    """``batchmill.cli.fetchers:fetch`` does one fetch with a client of its own."""
    assert fetch(_context(), None, Target(web.says("/a", b"text"))).content == "text"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "ftp://secret.example"),
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/nope/secret.example"),
    ],
)
def test_an_environment_that_httpx_cannot_use_is_one_line(invoke, db, monkeypatch, name, value):
    """It says where to look, and shows no address: a proxy's may hold a password."""
    monkeypatch.setenv(name, value)
    ran = invoke("run", "-", "--db", db, stdin="file:///nope\n")
    assert ran.exit_code == 2
    assert ran.stderr.count("\n") == 1
    assert name in ran.stderr
    assert "secret" not in ran.stderr
