"""The runner's half of the repository: what ``batchmill.runner.JobStore`` asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any

from sqlalchemy import Engine

from batchmill.errors import StoreError
from batchmill.record_checks import (
    check_limits,
    check_outcomes,
    check_submission,
    check_tokens,
)
from batchmill.records import (
    Admission,
    BatchJob,
    BatchTarget,
    Exchange,
    Held,
    Limits,
    Outcome,
    Released,
    Settled,
)
from batchmill.store.failures import PASSING
from batchmill.store.listening import Subscription
from batchmill.store.operations import exchanging, holding, jobs, removing, submitting
from batchmill.store.operations.exchanging import Ask
from batchmill.store.transactions import Transactions
from batchmill.store.tx import Compiler
from batchmill.validation import (
    check_callable,
    check_count,
    check_duration,
    check_flag,
    check_id,
    check_max_bytes,
    check_name,
    check_seconds,
    check_ttl,
    to_ms,
)


class QueueRepository:
    """Submit, exchange, hold, release, cancel; see ``batchmill.runner.JobStore``."""

    engine: Engine
    _compiler: Compiler
    _transactions: Transactions
    _submitted: set[str]
    """Queues that this repository has submitted to since it last claimed from them."""

    def bound_to(self, within: Any) -> QueueRepository:
        """The same inside the application's transaction; see :class:`BatchRepository`."""
        raise NotImplementedError

    def submit_job(
        self,
        job: BatchJob,
        targets: Sequence[BatchTarget],
        *,
        queue: str,
        home: str | None,
        limits: Limits,
        now: float,
        ttl: timedelta,
        within: Any = None,
    ) -> Admission:
        """Answer with the job that has the key, or store this one with its turn, or reject it.

        See ``JobStore.submit_job``. ``within``: a Connection or Session of the application's,
        which commits both or neither.
        """
        if within is not None:
            bound = self.bound_to(within)
            return bound.submit_job(
                job, targets, queue=queue, home=home, limits=limits, now=now, ttl=ttl
            )
        checked, new_targets = check_submission(job, targets)
        new = submitting.Submission(
            job=checked,
            targets=new_targets,
            queue=check_name("queue", queue, least=1),
            home=None if home is None else check_id("home", home),
            limits=check_limits(limits),
            now=check_seconds("now", now),
            now_ms=to_ms(now),
            ttl=check_ttl("ttl", ttl),
        )
        admission = self._transactions.write(lambda tx: submitting.submit(tx, new))
        self._submitted.add(new.queue)
        return admission

    def exchange(
        self,
        runner_id: str,
        outcomes: Sequence[Outcome],
        *,
        queue: str,
        want: int,
        shared: bool,
        now: float,
        hold_for: float,
        max_bytes: int,
    ) -> Exchange:
        """Store what finished, settle jobs, keep the byte budget, claim up to ``want`` targets.

        See ``JobStore.exchange``. What the budget asks for beyond one step is evicted after the
        commit, in short transactions; where these fail, the next exchange that stores goes on.
        """
        checked = check_outcomes(outcomes)
        ask = Ask(
            runner_id=check_id("runner_id", runner_id),
            queue=check_name("queue", queue, least=1),
            want=check_count("want", want),
            shared=check_flag("shared", shared),
            now=check_seconds("now", now),
            now_ms=to_ms(now),
            hold_for_ms=to_ms(check_duration("hold_for", hold_for)),
            max_bytes=check_max_bytes("max_bytes", max_bytes),
        )
        if not checked and not self._surely_something(ask):
            idle = self._transactions.read(lambda tx: exchanging.nothing_to_claim(tx, ask))
            if idle is not None:
                return idle
        done = self._exchange(checked, ask)
        if done.over_budget:
            with suppress(StoreError):  # the answer to what is committed must not be lost by it
                self._keep_budget(
                    ask.max_bytes, [settled.job_id for settled in done.answer.settled]
                )
        return done.answer

    def _surely_something(self, ask: Ask) -> bool:
        """Whether there should be something to claim, so that a look before would be in vain."""
        if not ask.want or ask.queue not in self._submitted:
            return False
        self._submitted.discard(ask.queue)
        return True

    def _exchange(self, outcomes: list[Outcome], ask: Ask) -> exchanging.Exchanged:
        """All at once, or, when the set can't be stored, one by one."""
        try:
            return self._transactions.write(lambda tx: exchanging.exchange(tx, outcomes, ask))
        except PASSING:
            raise
        except StoreError:
            if not outcomes:
                raise
        return self._transactions.write(
            lambda tx: exchanging.exchange_singly(tx, outcomes, ask), savepoints=True
        )

    def _keep_budget(self, max_bytes: int, spared: list[str]) -> None:
        self._in_steps(lambda tx, most: removing.evict_step(tx, max_bytes, spared, most), None)

    def _in_steps(self, step: Callable[..., removing.Step], limit: int | None) -> int:
        """Repeat a step, each in its own transaction, until it finds no more or the limit."""
        removed = 0
        while limit is None or removed < limit:
            left = None if limit is None else limit - removed
            begun = monotonic()
            done = self._transactions.write(partial(step, most=left))
            removed += done.removed
            if not done.more or removed == limit:
                break
            self._transactions.let_others_in(monotonic() - begun)
        return removed

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        """Say that the runner is alive; renew these holds, and the leases of their jobs."""
        runner_id = check_id("runner_id", runner_id)
        names = check_tokens(tokens)
        lease, now_ms = check_seconds("now", now), to_ms(now)
        hold_for_ms = to_ms(check_duration("hold_for", hold_for))
        return self._transactions.write(
            lambda tx: holding.hold(tx, runner_id, names, lease, now_ms, hold_for_ms)
        )

    def leave(self, runner_id: str) -> None:
        """Say that the runner has ended in order: its local jobs count as lost from now on."""
        runner_id = check_id("runner_id", runner_id)
        self._transactions.write(lambda tx: holding.leave(tx, runner_id))

    def release_lost(
        self, *, now: float, hold_for: float, max_attempts: int, limit: int
    ) -> Released:
        """Put back what lost runners had in flight, and fail the local jobs of runners not seen.

        See ``JobStore.release_lost``.
        """
        lease, now_ms = check_seconds("now", now), to_ms(now)
        hold_for_ms = to_ms(check_duration("hold_for", hold_for))
        max_attempts = check_count("max_attempts", max_attempts, least=1)
        limit = check_count("limit", limit)
        if not self._transactions.read(lambda tx: holding.anything_lost(tx, now_ms, hold_for_ms)):
            return Released()
        return self._transactions.write(
            lambda tx: holding.release_lost(tx, lease, now_ms, hold_for_ms, max_attempts, limit)
        )

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        """End a live job as cancelled; None for an unknown or terminal one."""
        job_id = check_id("job_id", job_id)
        lease = check_seconds("now", now)
        return self._transactions.write(lambda tx: jobs.cancel_job(tx, job_id, lease))

    def subscribe(
        self, wake: Callable[[], None], *, queue: str | None = None
    ) -> AbstractContextManager[Any] | None:
        """A context in which ``wake`` is called when there may be new work of the queue.

        None where the database has no push between processes: a runner polls there. ``queue``
        None is any queue. ``wake`` is called from a thread of the context's own. A connection
        that is lost is made anew; what was committed meanwhile isn't heard of, so that polling
        stays the safety net. Entering the context raises ``NotMigrated``.
        """
        check_callable("wake", wake)
        if queue is not None:
            check_name("queue", queue, least=1)
        if not self._compiler.can.pushes:
            return None
        return Subscription(self.engine, self._compiler.schema, wake, queue)
