"""Saying once that the store fails, and once that it answers again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from batchmill.runner.logs import Log


class Outages:
    """What the services of one runner know together of its store's failures.

    A store that is away fails every service, again and again: the first one that meets it says so,
    and whoever clears the last of the failures says how long it took.
    """

    def __init__(self, logger: Log) -> None:
        self.back: Callable[[], None] = lambda: None
        """Called when the store answers a service again."""
        self._logger = logger
        self._lock = threading.Lock()
        self._failing: dict[str, str] = {}
        self._since = 0.0

    def failed(self, service: str, error: BaseException) -> bool:
        """A service met an error; True when it is news, to be logged by the service."""
        kind = type(error).__name__
        with self._lock:
            if not self._failing:
                self._since = monotonic()
            news = kind not in self._failing.values()
            self._failing[service] = kind
        return news

    def answered(self, service: str) -> None:
        """The store answered this service."""
        if not self._failing:
            return
        with self._lock:
            failed = self._failing.pop(service, None) is not None
            over = not self._failing
        if failed and over:
            self._logger.info("the store answers again, after %.1f s", monotonic() - self._since)
        if failed:
            self.back()
