"""Cases from the field about many who write at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from batchmill.records import Claim
from tests.store.support import HOUR, done, exchange, finish, job, submit, targets
from tests.store.workers import in_processes, record_and_sweep
from tests.support.invariants import broken

LATE = 100 + 3600
"""When the lease of what was last used at second 100 has run out."""
JOBS = 200
PATIENCE = 50.0


class Crowd:
    """Threads that each repeat a step on a store of their own until it is over."""

    def __init__(self, database) -> None:
        self._database = database
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()
        self.errors: list[BaseException] = []

    def add(self, count: int, step: Callable[..., None]) -> None:
        """So many threads that call ``step(store, number)``."""
        for number in range(count):
            store = self._database.store()
            arguments = (step, store, number)
            self._threads.append(threading.Thread(target=self._repeat, args=arguments))

    def _repeat(self, step: Callable[..., None], store, number: int) -> None:
        try:
            while not self._over.is_set():
                step(store, number)
        except BaseException as error:
            self.errors.append(error)
            self._over.set()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """All of them work, until the end of the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join(PATIENCE)
        assert self.errors == []

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, or one of the threads has failed."""
        for _ in range(int(PATIENCE / 0.02)):
            if holds() or self._over.wait(0.02):
                return
        raise AssertionError("it never came to its end")


def test_case_29_sweepers_evictors_and_recorders(database, store):
    """4 sweepers, 2 evictors and 4 recorders on 200 jobs (cases.md 29 and S20).

    No deadlock and no lock timeout comes out, the deleted jobs add up to 200, and no target is
    fetched twice.
    """
    for number in range(JOBS // 4):
        finish(store, f"old-{number:02}", '"old"')
        finish(store, f"new-{number:02}", '"new"')
        store.touch_job(f"new-{number:02}", now=LATE)
    for number in range(JOBS // 4):
        submit(store, f"live-{number:02}", 3)
        submit(store, f"young-{number:02}", 3)
        store.touch_job(f"young-{number:02}", now=LATE)
    deleted: list[int] = []
    fetched: Counter[tuple[str, int]] = Counter()
    brought: dict[int, list[Claim]] = {number: [] for number in range(4)}

    def sweeping(store, _number):
        deleted.append(store.sweep(now=LATE, ttl=HOUR))

    def evicting(store, _number):
        deleted.append(store.evict_oldest(max_bytes=50))

    def recording(store, number):
        outcomes = [done(claim, '"result"') for claim in brought[number]]
        answer = exchange(store, outcomes, want=3, now=LATE, runner_id=f"r{number}")
        assert not answer.refused
        brought[number] = list(answer.claims)
        fetched.update((claim.job_id, claim.idx) for claim in answer.claims)

    crowd = Crowd(database)
    crowd.add(4, sweeping)
    crowd.add(2, evicting)
    crowd.add(4, recording)
    with crowd.at_work():
        crowd.until(lambda: store.count_live_jobs() == 0)
    deleted.append(store.evict_oldest(max_bytes=0))
    assert store.list_jobs() == []
    assert sum(deleted) == JOBS
    assert max(fetched.values()) == 1
    assert broken(database) == []


def test_case_10_a_target_recorded_many_times_counts_once(store):
    """Recording one target done, then failed, from 8 threads raises targets_done by 1."""
    store.create_job(job("a", targets_total=2))
    store.put_targets("a", targets(2))

    def record(status: str) -> None:
        result = '"xyz"' if status == "done" else None
        store.update_target("a", 0, now=100, status=status, result=result)

    for status in ("done", "failed"):
        threads = [threading.Thread(target=record, args=(status,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = store.get_job("a")
        assert (stored.targets_done, stored.nbytes) == (1, 5 if status == "done" else 0)


def test_case_1_processes_that_record_and_sweep(database, store):
    """2 processes of 4 threads record and sweep on one database: no error, every count exact.

    tests/store/test_processes.py has the long form, for it is SQLite that fails at it elsewhere.
    """
    count = 30
    names = [f"job-{number}-{thread}" for number in range(2) for thread in range(4)]
    for name in names:
        store.create_job(job(name, targets_total=count, created_at=1000, lease=1000))
        store.put_targets(name, targets(count))
    assert in_processes(2, record_and_sweep, database.url, True, count) == [[], []]
    counted = database.query("SELECT DISTINCT targets_done, nbytes FROM batch_job")
    assert counted == [(count, 2 * count)]
    assert broken(database, submitted=False) == []
