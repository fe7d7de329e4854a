"""What the runner's rules are tested with: callers, hooks that note, a fetch that waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from batchmill.runner import Hooks, Result, RunnerConfig, Target

Start = Callable[..., Any]
SOON = 20.0
"""Seconds that a test waits for what comes at once; a bound, never a pause."""


@dataclass(frozen=True)
class Caller:
    name: str


ADA, BOB = Caller("ada"), Caller("bob")
CONFIG = RunnerConfig(
    jobs_per_caller=4, poll_interval=timedelta(milliseconds=5), retry_wait=timedelta(seconds=2)
)


class Seen:
    """What the hooks were told, in order."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.targets: list[tuple[Any, int]] = []
        self.seconds: list[float] = []
        self.depths: list[int] = []
        self.inflight: list[int] = []

    def hooks(self) -> Hooks:
        return Hooks(
            job=self.jobs.append,
            target=lambda error, _seconds, size: self.targets.append((error, size)),
            job_seconds=self.seconds.append,
            depth=self.depths.append,
            inflight=self.inflight.append,
        )


class Gate:
    """A fetch that notes what it was called with, and holds the URLs that it was told to hold."""

    def __init__(self, *held: str) -> None:
        self.order: list[str] = []
        self._lock = threading.Lock()
        self._open = {url: threading.Event() for url in held}
        self._begun = {url: threading.Event() for url in held}

    def __call__(self, _context: Any, _caller: Any, target: Target) -> Result:
        with self._lock:
            self.order.append(target.url)
        if target.url in self._open:
            self._begun[target.url].set()
            assert self._open[target.url].wait(SOON)
        return Result(target.url)

    def reached(self, url: str) -> None:
        assert self._begun[url].wait(SOON)

    def release(self, *urls: str) -> None:
        for url in urls:
            self._open[url].set()


def echo(_context: Any, _caller: Any, target: Target) -> Result:
    """A fetch that gives back the URL."""
    return Result(target.url)


def until(holds: Callable[[], bool]) -> None:
    """Wait, for a bounded time, until another thread has made it true."""
    pause = threading.Event()
    for _ in range(int(SOON / 0.002)):
        if holds():
            return
        pause.wait(0.002)
    raise AssertionError("it did not become true")
