"""What the runner's tests share: callers, clocks, and fetches that hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from batchmill.runner import FetchContext, Result, Target

PATIENCE = 10.0
"""Seconds after which a bounded wait gives up: far more than any of them takes."""


@dataclass(frozen=True)
class User:
    """A caller."""

    name: str


ANNA, BERT, CLEO = User("anna"), User("bert"), User("cleo")


class Clock:
    """A clock that only a test moves."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Fetches:
    """A fetch that records its calls, holds what it is told to, and answers by URL.

    ``answers`` maps a URL to a Result, or an exception to raise, or a function of the context.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.calls: list[str] = []
        self.callers: list[str] = []
        self.contexts: dict[str, FetchContext] = {}
        self.targets: list[Target] = []
        self._changed = threading.Condition()
        self._held: set[str] = set()

    def __call__(self, context: FetchContext, caller: User, target: Target) -> Result:
        with self._changed:
            self.calls.append(target.url)
            self.callers.append(caller.name)
            self.contexts[target.url] = context
            self.targets.append(target)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: target.url not in self._held, PATIENCE)
        answer = self.answers.get(target.url, Result(f"content of {target.url}"))
        if isinstance(answer, BaseException):
            raise answer
        return answer(context) if callable(answer) else answer

    def hold(self, *urls: str) -> None:
        """The fetches of these URLs block until they are released."""
        with self._changed:
            self._held.update(urls)

    def release(self, *urls: str) -> None:
        """Let them go, all without names."""
        with self._changed:
            self._held.difference_update(urls or set(self._held))
            self._changed.notify_all()

    def wait_for(self, url: str, times: int = 1) -> None:
        """Wait until the fetch of this URL has begun so many times."""
        with self._changed:
            began = self._changed.wait_for(lambda: self.calls.count(url) >= times, PATIENCE)
        assert began, f"{url} was never fetched"


def until(condition: Callable[[], object], within: float = PATIENCE) -> None:
    """A bounded wait for something that another thread does."""
    deadline = monotonic() + within
    while not condition():
        assert monotonic() < deadline, "it never happened"
        sleep(0.002)
