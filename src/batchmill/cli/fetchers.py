"""The built-in fetch function: http and https through httpx, files read off the disk.

Its errors are for whoever reads the results; none holds a URL, which may carry a password.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx

from batchmill.cli import answers, files
from batchmill.cli.answers import Body
from batchmill.errors import InvalidInput, RetryLater, TargetError
from batchmill.runner import Caller, FetchContext, Result, Target

DEFAULT: Final = "batchmill.cli.fetchers:fetch"
"""What ``--fetch`` stands at when it isn't given."""

_CONNECT_TIMEOUT: Final = 10.0
_ENVIRONMENT: Final = (
    "httpx can't use the environment's proxies or certificates: check HTTP_PROXY, HTTPS_PROXY, "
    "ALL_PROXY (socks needs pip install 'httpx[socks]') and SSL_CERT_FILE"
)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How long one target may take, in seconds, and how many bytes it may have."""

    timeout: float = 30.0
    max_size: int = 16 * 2**20


class WebFetcher:
    """Fetches http, https and file URLs; one client for all, to be closed (or used by ``with``).

    A call has the runner's signature and may come from any thread. A 429 or 503 is
    ``RetryLater``, which honours Retry-After; any other failure is a ``TargetError`` with a
    hint. ``transport`` is httpx's, for tests. Raises ``InvalidInput`` where the environment's
    proxies or certificates can't be used.
    """

    def __init__(
        self,
        limits: FetchLimits | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.limits = limits or FetchLimits()
        patience = self.limits.timeout
        try:
            self._client = httpx.Client(
                follow_redirects=True,
                timeout=httpx.Timeout(patience, connect=min(patience, _CONNECT_TIMEOUT)),
                headers={"User-Agent": "batchmill", "Accept": "*/*"},
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
                transport=transport,
            )
        except (ValueError, ImportError, OSError, httpx.InvalidURL) as error:
            raise InvalidInput(f"{_ENVIRONMENT} ({type(error).__name__})") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def __call__(
        self,
        context: FetchContext,
        caller: Caller,  # noqa: ARG002 - the runner hands it to every fetch
        target: Target,
    ) -> Result:
        """Fetch one target; raises ``TargetError`` or ``RetryLater``."""
        try:
            scheme = urlsplit(target.url).scheme
        except ValueError:
            raise TargetError("not a URL", hint="write it like https://host/path") from None
        if scheme == "file":
            return files.read_file(target.url, Body(self.limits.max_size), context)
        if scheme in {"http", "https"}:
            return self._get(context, target.url)
        raise TargetError(
            f"{scheme}: is not fetched" if scheme else "the URL has no scheme",
            hint="give an http, https or file URL, or your own function with --fetch",
        )

    def _get(self, context: FetchContext, url: str) -> Result:
        body = Body(self.limits.max_size)
        try:
            return self._stream(context, url, body)
        except (httpx.InvalidURL, ValueError):
            raise TargetError("not a URL", hint="write it like https://host/path") from None
        except httpx.HTTPError as error:
            raise answers.connection_failure(error, body.size) from None

    def _stream(self, context: FetchContext, url: str, body: Body) -> Result:
        deadline = time.monotonic() + self.limits.timeout
        with self._client.stream("GET", url) as response:
            answers.check_status(response)
            body.expect(response.headers.get("content-length"))
            for chunk in response.iter_bytes():
                body.add(chunk)
                _go_on(context, deadline, self.limits.timeout)
            return answers.result_of(response, body)


def _go_on(context: FetchContext, deadline: float, timeout: float) -> None:
    """Raise when the runner closes or the job was cancelled, or when it has taken too long."""
    if context.cancelled:
        raise RetryLater("stopped before it had finished")
    if time.monotonic() > deadline:
        raise TargetError(
            f"not finished after {timeout:g} s",
            hint="the server sends slowly: raise --timeout, or try again later",
        )


def fetch(context: FetchContext, caller: Any, target: Target) -> Result:
    """One fetch with a client of its own: the built-in fetcher for a ``batchmill worker``."""
    with WebFetcher() as fetcher:
        return fetcher(context, caller, target)
