"""What an HTTP answer, or the lack of one, means for a target."""

from __future__ import annotations

import base64
import errno
import math
import socket
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from batchmill.cli.values import bytes_text
from batchmill.errors import RetryLater, TargetError
from batchmill.runner import Result

BUSY: Final = {429, 503}
_TEXT_TYPES: Final = {
    "application/json",
    "application/javascript",
    "application/xml",
    "application/x-ndjson",
    "application/yaml",
    "image/svg+xml",
}
_HINTS: Final = {
    401: "it asks for credentials that were not given",
    403: "the server doesn't let you read it",
    404: "nothing is at this address: check its spelling",
    407: "the proxy asks for credentials: check HTTPS_PROXY",
    410: "it was taken away for good",
    451: "it is withheld for legal reasons",
}


_OTHER_FAILURES: Final[tuple[tuple[type[httpx.HTTPError], str, str], ...]] = (
    (httpx.TooManyRedirects, "too many redirects", "the server sends you round in circles"),
    (httpx.UnsupportedProtocol, "not a URL that can be fetched", "write it like https://host/path"),
    (httpx.DecodingError, "the answer is garbled", "its Content-Encoding doesn't fit it"),
)


class Body:
    """The bytes of one target as they come in, held to a limit."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._parts: list[bytes] = []
        self.size = 0

    def expect(self, announced: str | None) -> None:
        """Refuse before reading what the server announces as too large."""
        if announced is not None and announced.isdecimal():
            self._check(int(announced))

    def add(self, chunk: bytes) -> None:
        """Keep a piece; raises ``TargetError`` over the limit."""
        self.size += len(chunk)
        self._check(self.size)
        self._parts.append(chunk)

    def _check(self, size: int) -> None:
        if size > self._max_size:
            raise TargetError(
                f"larger than {bytes_text(self._max_size)}", hint="raise --max-size to take it"
            )

    def result(
        self, content_type: str, charset: str | None, meta: dict[str, Any], *, guessed: bool = False
    ) -> Result:
        """Text as text, anything else in base64; ``meta`` says which, and how many bytes.

        A ``guessed`` type is told but not believed: the bytes decide.
        """
        decisive = "" if guessed else content_type
        content, encoding = _content(b"".join(self._parts), decisive, charset)
        described = {"bytes": self.size, "content_type": content_type, "encoding": encoding}
        return Result(content, described | meta)


def _content(data: bytes, content_type: str, charset: str | None) -> tuple[str, str]:
    declared = is_text(content_type)
    if not declared and content_type not in {"", "application/octet-stream"}:
        return base64.b64encode(data).decode("ascii"), "base64"
    try:
        return data.decode(charset or "utf-8"), (charset or "utf-8").lower()
    except (UnicodeError, LookupError):
        if not declared:
            return base64.b64encode(data).decode("ascii"), "base64"
    # A page that calls itself text and has a few wrong bytes: what a browser would show.
    return data.decode("utf-8", errors="replace"), "utf-8, with replacements"


def is_text(content_type: str) -> bool:
    """True for a media type whose bytes are characters."""
    return (
        content_type.startswith("text/")
        or content_type in _TEXT_TYPES
        or content_type.endswith(("+json", "+xml"))
    )


def result_of(response: httpx.Response, body: Body) -> Result:
    """The result of an answer that was read to its end."""
    content_type = response.headers.get("content-type", "").split(";")[0].strip().lower()
    meta: dict[str, Any] = {"status": response.status_code}
    if response.history:
        meta["url"] = str(response.url)
    return body.result(content_type, response.charset_encoding, meta)


def check_status(response: httpx.Response) -> None:
    """Return for a success; raises ``RetryLater`` for 429 and 503, else ``TargetError``."""
    if response.is_success:
        return
    status = response.status_code
    said = f"HTTP {status} {response.reason_phrase}".strip()
    if status in BUSY:
        raise RetryLater(said, after=retry_after(response))
    raise TargetError(said, hint=_HINTS.get(status) or _general_hint(status), status=status)


def _general_hint(status: int) -> str:
    if status >= 500:
        return "the server failed: try again later"
    if status >= 400:
        return "the server doesn't take this request"
    return "the server gave no document"


def retry_after(response: httpx.Response) -> float | None:
    """Retry-After in seconds from now; a date counts from the answer's own Date.

    None where there is none, or none that can be read (RFC 9110, 10.2.3).
    """
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdecimal():
        seconds = float(value)
        return seconds if math.isfinite(seconds) else None
    until = _http_date(value)
    if until is None:
        return None
    since = _http_date(response.headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds())


def _http_date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def connection_failure(error: httpx.HTTPError, received: int) -> TargetError:
    """A target's error for a connection that failed; ``received`` bytes of the body had come."""
    if isinstance(error, httpx.TimeoutException):
        return _timed_out(error)
    if isinstance(error, httpx.ConnectError):
        return _not_connected(error)
    if isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError)):
        return TargetError(
            f"the server broke off after {bytes_text(received)}", hint="try again later"
        )
    for kind, message, hint in _OTHER_FAILURES:
        if isinstance(error, kind):
            return TargetError(message, hint=hint)
    return TargetError(f"the fetch failed ({type(error).__name__})", hint="try again later")


def _timed_out(error: httpx.TimeoutException) -> TargetError:
    if isinstance(error, httpx.ConnectTimeout):
        return TargetError("no connection in time", hint="check the host's name and the network")
    return TargetError("no answer in time", hint="raise --timeout, or try again later")


def _not_connected(error: BaseException) -> TargetError:
    """Why there is no connection, from the causes: httpx's own text may name the host."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return TargetError("no such host", hint="check the host's name and the network")
        if isinstance(cause, ssl.SSLCertVerificationError):
            return TargetError("the certificate isn't trusted", hint="check the host's name")
        if isinstance(cause, ssl.SSLError):
            return TargetError("no secure connection", hint="is it http rather than https?")
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return TargetError("connection refused", hint="is the server running, on this port?")
        cause = cause.__cause__ or cause.__context__
    return TargetError("no connection", hint="check the host's name and the network")
