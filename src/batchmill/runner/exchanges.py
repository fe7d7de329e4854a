"""The one call that a busy runner makes to its store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from batchmill.records import Exchange
from batchmill.runner.dispatch import Ask
from batchmill.runner.identity import Identity
from batchmill.runner.logs import Log
from batchmill.runner.outages import Outages
from batchmill.runner.protocol import JobStore

_SERVICE: Final = "exchange"


class Exchanges:
    """Makes exchanges for one runner; times in seconds."""

    def __init__(
        self,
        store: JobStore,
        identity: Callable[[], Identity],
        *,
        hold_for: float,
        max_bytes: int,
        poll_interval: float,
        now: Callable[[], float],
        logger: Log,
        outages: Outages,
    ) -> None:
        self._store = store
        self._identity = identity
        self._hold_for = hold_for
        self._max_bytes = max_bytes
        self._poll_interval = poll_interval
        self._now = now
        self._logger = logger
        self._outages = outages

    def make(self, ask: Ask) -> tuple[Exchange, float | None]:
        """The exchange, and in how many seconds the next waiting target is ready."""
        me, now = self._identity(), self._now()
        exchange = self._store.exchange(
            me.id,
            ask.outcomes,
            queue=me.queue,
            want=ask.want,
            shared=me.shared,
            now=now,
            hold_for=self._hold_for,
            max_bytes=self._max_bytes,
        )
        self._outages.answered(_SERVICE)
        return exchange, self._ready_in(exchange.next_ready_at, now)

    def _ready_in(self, next_ready_at: float | None, now: float) -> float | None:
        if next_ready_at is None:
            return None
        if next_ready_at <= now:  # it would have been claimed: somebody else has it
            return self._poll_interval
        return next_ready_at - now

    def failed(self, ask: Ask, error: BaseException, pause: float | None) -> None:
        """Log it, once an outage: job ids and the error's class, never its text.

        ``pause`` is None when the runner has ended, and tries no more.
        """
        if pause is None:
            for outcome in ask.outcomes:
                self._logger.warning("job %s: an outcome could not be stored", outcome.job_id)
            return
        if not self._outages.failed(_SERVICE, error):
            return
        jobs = ", ".join(outcome.job_id for outcome in ask.outcomes[:3]) or "none"
        self._logger.warning(
            "store error (%s): %s outcomes kept, next try in %.2f s; jobs: %s%s",
            type(error).__name__,
            len(ask.outcomes),
            pause,
            jobs,
            ", …" if len(ask.outcomes) > 3 else "",
        )
