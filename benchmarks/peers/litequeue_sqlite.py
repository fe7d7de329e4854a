"""litequeue: a message of 1 KiB a target, popped and marked as done by one process.

Its file may hold no other table, so nothing but the queue itself is measured.
"""

from __future__ import annotations

import statistics
from time import perf_counter, sleep
from typing import Any

from benchmarks.child import wait_for_go
from benchmarks.shape import CONTENT, rate

PAUSE = 0.005


def submit(url: str, jobs: int, targets: int) -> float:
    """Put every message, 32 a transaction; how many a second."""
    queue = _queue(url)

    def all_of_them() -> None:
        for _ in range(jobs):
            with queue.transaction():
                for _ in range(targets):
                    queue.put(CONTENT)

    return rate(jobs * targets, all_of_them)


def drain(url: str, jobs: int, targets: int) -> float:
    """Pop and finish every message; how many a second."""
    queue = _queue(url)

    def all_of_them() -> None:
        for _ in range(jobs * targets):
            _one(queue, queue.pop())

    return rate(jobs * targets, all_of_them)


def worker(url: str, times: int) -> float:
    """Serve ``sender``: the median in ms from its call to the finished message."""
    queue = _queue(url)
    found: list[float] = []
    wait_for_go()
    while len(found) < times:
        message = queue.pop()
        if message is None:
            sleep(0.001)
            continue
        _one(queue, message)
        found.append(perf_counter() - float(message.data))
    return statistics.median(found) * 1000


def sender(url: str, times: int) -> None:
    """Put one message after the other; each is the time of its call."""
    queue = _queue(url)
    for _ in range(times):
        sleep(PAUSE)
        queue.put(repr(perf_counter()))


def _one(queue: Any, message: Any) -> None:
    if not queue.done(message_id=message.message_id, claim_id=message.claim_id):
        raise SystemExit("litequeue lost a message")


def _queue(url: str) -> Any:
    from litequeue import LiteQueue  # type: ignore[import-not-found]

    return LiteQueue(url.removeprefix("sqlite:///"), timeout=30)
