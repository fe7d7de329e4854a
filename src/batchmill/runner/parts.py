"""What a threaded runner is put together from."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from batchmill.records import Limits
from batchmill.runner.after import AfterCommit
from batchmill.runner.callers import CallerSource, KeptCallers, ResolvedCallers
from batchmill.runner.clock import StoreClock
from batchmill.runner.config import Caller, Hooks, RunnerConfig
from batchmill.runner.dispatch import Dispatch
from batchmill.runner.exchanges import Exchanges
from batchmill.runner.fetching import Fetcher
from batchmill.runner.identity import Identity
from batchmill.runner.logs import Log
from batchmill.runner.observer import Observer
from batchmill.runner.outages import Outages
from batchmill.runner.protocol import FetchFunc, JobStore, ResolveCaller
from batchmill.runner.rules import RetryRules
from batchmill.runner.services import (
    LONGEST_PERIOD,
    RELEASE,
    SHORTEST_LOOK,
    Holder,
    Housekeeper,
    Loop,
)
from batchmill.runner.submitting import Submitter
from batchmill.runner.watchers import Watchers
from batchmill.runner.workers import Workers
from batchmill.validation import check_time, check_ttl

C = TypeVar("C", bound=Caller)


class Parts(Generic[C]):
    """The parts of one runner, wired; nothing runs before ``start``."""

    def __init__(
        self,
        store: JobStore,
        fetch: FetchFunc[C],
        config: RunnerConfig,
        *,
        hooks: Hooks,
        resolve_caller: ResolveCaller[C] | None,
        identity: Callable[[], Identity],
        clock: Callable[[], float] | None,
        logger: Log,
    ) -> None:
        self._store, self._config, self._logger = store, config, logger
        self._identity = identity
        self.outages = Outages(logger)
        self.hold_for: Final = config.hold_for.total_seconds()
        self._set_clock(clock, shared=resolve_caller is not None)
        self.watchers = Watchers()
        self.kept: KeptCallers[C] = KeptCallers()
        self._callers: CallerSource[C] = (
            self.kept if resolve_caller is None else ResolvedCallers(resolve_caller)
        )
        self._observer = Observer(
            hooks, count_live=store.count_live_jobs, now=self.now, logger=logger
        )
        self.after = AfterCommit(self._observer, self.watchers, self.kept, logger)
        self.workers = self._make_workers(fetch)
        self.outages.back = self.workers.retry
        self.housekeeper = self._make_housekeeper()
        self.submitter = self._make_submitter()
        self.holder = self._make_holder()
        self.loops = self._make_loops()

    def _set_clock(self, clock: Callable[[], float] | None, *, shared: bool) -> None:
        """design.md section 5: shared, the clock is the store's; an explicit one wins.

        ``peek`` tells the time without asking the store, for a submit inside a transaction.
        """
        self.now: Callable[[], float]
        self.peek: Callable[[], float]
        self.clock_sample: Callable[[], None] = _no_sample
        if clock is None and shared:
            store_clock = StoreClock(self._store.now, logger=self._logger, outages=self.outages)
            self.now, self.peek = store_clock, store_clock.peek
            self.clock_sample = store_clock.sample
        else:
            self.now = self.peek = time.time if clock is None else _checked(clock)

    def _make_workers(self, fetch: FetchFunc[C]) -> Workers:
        poll_interval = self._config.poll_interval.total_seconds()
        exchanges = Exchanges(
            self._store,
            self._identity,
            hold_for=self.hold_for,
            max_bytes=self._config.max_bytes,
            poll_interval=poll_interval,
            now=self.now,
            logger=self._logger,
            outages=self.outages,
        )
        fetcher = Fetcher(
            fetch,
            self._callers,
            RetryRules.of(self._config),
            now=self.now,
            observer=self._observer,
            logger=self._logger,
        )
        dispatch = Dispatch(self._config.workers, poll_interval)
        return Workers(dispatch, fetcher, exchanges, self.after)

    def _make_housekeeper(self) -> Housekeeper:
        return Housekeeper(
            self._store,
            self.kept,
            self.after,
            ttl=self._config.ttl,
            hold_for=self.hold_for,
            max_bytes=self._config.max_bytes,
            max_attempts=self._config.max_attempts,
            now=self.now,
        )

    def _make_submitter(self) -> Submitter[C]:
        config = self._config
        return Submitter(
            self._store,
            self._identity,
            self.kept,
            self.after,
            limits=Limits(config.targets_per_job, config.jobs_per_caller, config.jobs_total),
            ttl=config.ttl,
            sweep=self.housekeeper.sweep,
            logger=self._logger,
        )

    def _make_holder(self) -> Holder:
        return Holder(
            self._store,
            self._identity,
            self.workers,
            hold_for=self.hold_for,
            now=self.now,
            sample=self.clock_sample,
            logger=self._logger,
        )

    def _make_loops(self) -> list[Loop]:
        """design.md section 4: holds are renewed from a loop that does nothing else."""
        ttl = check_ttl("ttl", self._config.ttl)
        poll_interval = max(self._config.poll_interval.total_seconds(), SHORTEST_LOOK)
        loop = partial(Loop, logger=self._logger, outages=self.outages)
        return [
            loop("hold", min(self.hold_for, ttl) / 3, self.holder.step),
            loop("sweep", min(ttl / 10, LONGEST_PERIOD), self.housekeeper.step),
            loop(RELEASE, min(poll_interval, self.hold_for / 2, LONGEST_PERIOD), self._release),
        ]

    def _release(self) -> int:
        """Take over what lapsed, within one poll; it only reads where nothing has."""
        if not self.holder.may_release():
            return 0
        released = self.housekeeper.release()
        if released.put_back:
            self.workers.wake()
        return released.put_back

    def start(self, name: str) -> None:
        """Start every thread."""
        self.workers.start(name)
        for loop in self.loops:
            loop.start(name)

    def stop_services(self, timeout: float) -> None:
        """End the loops; each gets so many seconds for the step under way."""
        for loop in self.loops:
            loop.stop(timeout)


def _checked(clock: Callable[[], float]) -> Callable[[], float]:
    """An application's clock, whose every answer must be a time."""
    return lambda: check_time("clock", clock())


def _no_sample() -> None:
    """A clock of this host's needs no sampling."""
