"""huey on SQLite: a task a target, results kept, a consumer of one thread in its own process.

More threads share one connection and its lock, and are slower. A task without a group is
enqueued by itself: there is no bulk form.
"""

from __future__ import annotations

import statistics
import threading
from time import perf_counter, sleep
from typing import Any

from benchmarks.child import wait_for_go
from benchmarks.shape import CONTENT, READS, rate, url_of

POLL = 0.001
PAUSE = 0.005


def submit(url: str, jobs: int, targets: int, fsync: bool) -> float:  # noqa: FBT001 - JSON
    """Enqueue every target; how many a second. The ids go in a table of their own."""
    huey, fetch = _app(url, fsync=fsync)
    ids: list[str] = []

    def all_of_them() -> None:
        for job in range(jobs):
            ids.extend(fetch(url_of(job, idx)).id for idx in range(targets))

    found = rate(jobs * targets, all_of_them)
    huey.put("ids", ids)
    return found


def drain(url: str, jobs: int, targets: int, fsync: bool) -> float:  # noqa: FBT001 - JSON
    """Work everything off; how many a second, from the first call to the last stored result."""
    huey, _ = _app(url, fsync=fsync)
    times: list[float] = []
    finished = threading.Event()

    @huey.pre_execute()
    def begin(_task: Any) -> None:
        if not times:
            times.append(perf_counter())

    @huey.signal("complete")  # sent after the result is stored
    def complete(_signal: str, _task: Any) -> None:
        times.append(perf_counter())
        if len(times) > jobs * targets:
            finished.set()

    _consume(huey, finished)
    return jobs * targets / (times[-1] - times[0])


def read(url: str, jobs: int, targets: int, fsync: bool) -> float:  # noqa: FBT001 - JSON
    """Read every result and keep it; how many a second."""
    huey, _ = _app(url, fsync=fsync)
    ids = huey.get("ids", peek=True)
    if [huey.result(each, preserve=True) for each in ids] != [CONTENT] * (jobs * targets):
        raise SystemExit(f"huey didn't keep {jobs * targets} results")

    def all_of_them() -> None:
        for each in ids * READS:
            huey.result(each, preserve=True)

    return rate(len(ids) * READS, all_of_them)


def worker(url: str, times: int, fsync: bool) -> float:  # noqa: FBT001 - JSON
    """Serve ``sender``: the median in ms from its call to the stored result."""
    huey, _ = _app(url, fsync=fsync)
    found: list[float] = []
    finished = threading.Event()

    @huey.signal("complete")
    def complete(_signal: str, task: Any) -> None:
        found.append(perf_counter() - float(task.args[0]))
        if len(found) == times:
            finished.set()

    threading.Thread(target=wait_for_go, daemon=True).start()
    _consume(huey, finished)
    return statistics.median(found) * 1000


def sender(url: str, times: int, fsync: bool) -> None:  # noqa: FBT001 - JSON
    """Submit one target after the other; each carries the time of its call."""
    _, fetch = _app(url, fsync=fsync)
    for _ in range(times):
        sleep(PAUSE)
        fetch(repr(perf_counter()))


def _app(url: str, *, fsync: bool) -> tuple[Any, Any]:
    from huey import SqliteHuey  # type: ignore[import-not-found]

    path = url.removeprefix("sqlite:///")
    huey = SqliteHuey("bench", filename=path, fsync=fsync, cache_mb=64, timeout=30)

    @huey.task()
    def fetch(_url: str) -> str:
        return CONTENT

    return huey, fetch


def _consume(huey: Any, finished: threading.Event) -> None:
    consumer = huey.create_consumer(
        workers=1, periodic=False, initial_delay=POLL, backoff=1.0, max_delay=POLL
    )
    consumer.start()
    finished.wait()
    consumer.stop(graceful=True)
