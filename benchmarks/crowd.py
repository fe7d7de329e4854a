"""Several worker processes on one database, each a shared runner: what a child of them does."""

from __future__ import annotations

from time import sleep

from batchmill import Hooks, Runner
from batchmill.runner import JobStore
from benchmarks.child import wait_for_go
from benchmarks.mill import Meter, Person, config, opened, submitted, warm
from benchmarks.shape import Shape


def submit(url: str, durability: str, jobs: int, targets: int) -> int:
    """Submit the shape's jobs for any shared runner; how many."""
    shape = Shape(jobs, targets)
    with opened(url, durability) as store:
        return len(submitted(_runner(store, Meter(0), 1, shape, Hooks()), shape))


def work(url: str, durability: str, workers: int, jobs: int, targets: int) -> dict[str, float]:
    """Wait for the word, drain until no job is left; when it began and ended, how many it ended.

    The times are of the clock that all processes of a machine share.
    """
    shape, meter = Shape(jobs, targets), Tally()
    with opened(url, durability) as store:
        warm(store)
        runner = _runner(store, meter, workers, shape, Hooks(job=meter.job))
        wait_for_go()
        with runner:
            while store.count_live_jobs():
                sleep(0.02)
        return {"first": meter.first, "last": meter.last, "ended": meter.ended}


class Tally(Meter):
    """Times from the first fetch to the last job that this process ended."""

    def __init__(self) -> None:
        super().__init__(0)
        self.ended = 0

    def job(self, outcome: str) -> None:
        """Another job ended here."""
        self._left = 1
        super().job(outcome)
        self.ended += outcome == "done"


def _runner(
    store: JobStore, meter: Meter, workers: int, shape: Shape, hooks: Hooks
) -> Runner[Person]:
    return Runner(
        store,
        meter.fetch,
        config(workers, shape),
        hooks=hooks,
        resolve_caller=lambda _name, _class: Person(),
    )
