"""The threads that fetch. There is no other one that tells them what to do.

A hand-over between threads costs about 60 µs (measured), so the worker that finished runs the
exchange itself: it takes along what the others have delivered, claims for all that are idle, keeps
one claim and lets the others be taken from a queue. While it is at the store the others only
deliver, and the next one that is free takes all of that into the next exchange: with slow fetches
nothing waits for company, and under load one commit serves many. One waiting worker is woken, and
each that takes something up wakes the next while there is more. So slow fetches start one such
hand-over after another, and where a fetch ends before the woken one runs, its worker takes the next
itself: measured on SQLite with 32 workers, waking one for each claim was 44 % of all work.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from batchmill.records import Claim, Outcome
from batchmill.runner.after import AfterCommit
from batchmill.runner.context import FetchContext
from batchmill.runner.dispatch import Ask, Dispatch, Flight
from batchmill.runner.exchanges import Exchanges
from batchmill.runner.pauses import jitter
from batchmill.runner.rules import put_back


class Slot:
    """One worker's place: a lock to park at."""

    __slots__ = ("due", "park")

    def __init__(self) -> None:
        self.park = threading.Lock()
        self.park.acquire()
        self.due = math.inf
        """When it wakes by itself to look at the store; one that waits is enough for all."""


class Workers:
    """The worker threads of one runner, and the dispatch that they share under one lock."""

    def __init__(
        self,
        dispatch: Dispatch,
        fetch: Callable[[Flight], Outcome],
        exchanges: Exchanges,
        after: AfterCommit,
    ) -> None:
        self._dispatch = dispatch
        self._fetch = fetch
        self._exchanges = exchanges
        self._after = after
        self._lock = threading.Lock()
        self._stored = threading.Condition(self._lock)
        self._changed = threading.Condition()
        self._waiting: list[Slot] = []
        self._ready: deque[Flight] = deque()
        self._called: Slot | None = None
        self._timed = math.inf
        self._cancelled_meanwhile: set[str] = set()
        self._quiet = threading.Event()
        self._dry = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, name: str) -> None:
        """Start the threads; daemons, so that a blocked fetch can't keep the process alive."""
        for number in range(self._dispatch.slots):
            thread = threading.Thread(
                target=self._work, args=(Slot(),), name=f"{name}-worker-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _work(self, slot: Slot) -> None:
        flight = self._next(slot, None)
        while flight is not None:
            flight = self._next(slot, self._fetch(flight))

    def _next(self, slot: Slot, outcome: Outcome | None) -> Flight | None:
        """Deliver, and get the next target to fetch; None when the runner has ended."""
        if outcome is not None:
            self._deliver(outcome)
        while True:
            with self._lock:
                self._arrived(slot)
                if self._ready:
                    return self._take()
                if self._over():
                    return None
                ask = self._dispatch.ask(monotonic())
                if ask is None:
                    self._queue_up(slot)
            if ask is None:
                self._wait(slot)
            elif (flight := self._lead(ask)) is not None:
                return flight

    def _arrived(self, slot: Slot) -> None:
        if self._called is slot:
            self._called = None

    def _take(self) -> Flight:
        flight = self._ready.popleft()
        self._leave_the_rest()
        return flight

    def _deliver(self, outcome: Outcome) -> None:
        with self._lock:
            self._dispatch.deliver(outcome)
            if self._dispatch.stopping and self._dispatch.busy == 0:
                self._quiet.set()

    def _over(self) -> bool:
        """Stopping, and nothing left to store that nobody is storing."""
        return self._dispatch.stopping and (self._dispatch.asking or not self._dispatch.unstored)

    # Waiting

    def _queue_up(self, slot: Slot) -> None:
        """Only the first to be due waits with a time limit; it stands where it is called last."""
        due = self._dispatch.due()
        if due < self._timed:
            slot.due = self._timed = due
            self._waiting.insert(0, slot)
        else:
            slot.due = math.inf
            self._waiting.append(slot)

    def _wait(self, slot: Slot) -> None:
        timeout = -1.0
        if slot.due < math.inf:
            timeout = min(max(slot.due - monotonic(), 0.0), threading.TIMEOUT_MAX)
        if not slot.park.acquire(timeout=timeout):
            with self._lock:
                if slot in self._waiting:
                    self._leave(slot)
                else:  # called in the very moment in which its time was up
                    slot.park.acquire()

    def _leave(self, slot: Slot) -> None:
        self._waiting.remove(slot)
        if slot.due == self._timed:
            self._timed = math.inf

    def _release(self, slot: Slot) -> None:
        self._leave(slot)
        slot.park.release()

    def _call_one(self) -> None:
        """Let one that waits look at the dispatch; one at a time is enough."""
        if self._waiting and self._called is None:
            self._called = self._waiting[-1]
            self._release(self._called)

    # Exchanging

    def _lead(self, ask: Ask) -> Flight | None:
        """Run the exchange that the dispatch asked for; one of its claims, if there are any."""
        try:
            exchange, ready_in = self._exchanges.make(ask)
        except BaseException as error:  # noqa: BLE001 - what was delivered outlives any error
            with self._lock:
                pause = self._dispatch.failed(ask, now=monotonic(), jitter=jitter())
                self._end_lead()
            self._exchanges.failed(ask, error, pause)
            return None
        with self._lock:
            landed, claimed = self._dispatch.answer(
                ask, exchange, now=monotonic(), ready_in=ready_in
            )
            self._prepare(claimed, exchange.cancelled)
            flight = self._hand_out(claimed)
            self._after.exchanged(exchange, landed)
            self._end_lead()
        self._after.tell()
        return flight

    def _prepare(self, claimed: Sequence[Flight], cancelled: Sequence[str]) -> None:
        for flight in claimed:
            flight.context = self._context(flight.claim)
        if cancelled or self._cancelled_meanwhile:
            self._cancel({*cancelled, *self._cancelled_meanwhile})

    def _context(self, claim: Claim) -> FetchContext:
        return FetchContext(claim.job_id, claim.idx, claim.attempt, self._changed)

    def _hand_out(self, claimed: list[Flight]) -> Flight | None:
        """One claim for the leader, the others for whoever is first."""
        if not claimed:
            return None
        self._ready.extend(claimed[1:])
        self._leave_the_rest()
        return claimed[0]

    def _leave_the_rest(self) -> None:
        """Who goes off to fetch leaves what else there is to do to one that waits."""
        if self._ready or self._dispatch.due() < self._timed:
            self._call_one()

    def _end_lead(self) -> None:
        self._cancelled_meanwhile.clear()
        if self._dispatch.dry:
            self._dry.set()
        if self._dispatch.stopping:
            self._stored.notify_all()

    # What the runner and its services say

    def wake(self) -> None:
        """There may be new work; wakes one worker at the most."""
        with self._lock:
            self._dispatch.wake()
            if not self._dispatch.stopping:
                self._dry.clear()
            self._call_if_due()

    def retry(self) -> None:
        """The store, which had failed, answers: an exchange that waits to be tried again is due."""
        with self._lock:
            self._dispatch.retry()
            self._call_if_due()

    def _call_if_due(self) -> None:
        if self._dispatch.due() <= monotonic():
            self._call_one()

    def cancel(self, job_ids: Sequence[str]) -> None:
        """These jobs have been cancelled: tell their fetches."""
        with self._lock:
            if self._dispatch.asking:
                self._cancelled_meanwhile.update(job_ids)
            self._cancel(set(job_ids))

    def _cancel(self, job_ids: set[str]) -> None:
        for flight in self._dispatch.flights.values():
            if flight.claim.job_id in job_ids and flight.context is not None:
                flight.context.cancel()

    def tokens(self) -> list[str]:
        """The holds to renew."""
        with self._lock:
            return self._dispatch.tokens()

    def lost(self, tokens: Sequence[str]) -> list[str]:
        """These holds are lost: tell their fetches. The jobs of those still in flight."""
        with self._lock:
            flights = [self._dispatch.flights.get(token) for token in tokens]
            still = [each for each in flights if each is not None and not each.delivered]
            for flight in still:
                if flight.context is not None:
                    flight.context.cancel()
            return [flight.claim.job_id for flight in still]

    def wait_dry(self, timeout: float | None) -> bool:
        """Wait until there is nothing to claim now or later, or the runner stops.

        False when time is up first.
        """
        self.wake()
        return self._dry.wait(timeout)

    # Ending

    def stop(self) -> None:
        """Claim no more, and tell every fetch in flight."""
        with self._lock:
            self._dispatch.stop()
            self._dry.set()
            while self._ready:
                self._dispatch.deliver(put_back(self._ready.popleft().claim))
            for flight in self._dispatch.flights.values():
                if flight.context is not None:
                    flight.context.cancel()
            if self._dispatch.busy == 0:
                self._quiet.set()
            self._release_all()

    def _release_all(self) -> None:
        while self._waiting:
            self._release(self._waiting[-1])

    def finish(
        self, timeout: float | None, *, grace: float, caller: threading.Thread
    ) -> tuple[list[str], list[str]]:
        """Wait for the fetches in flight, put back the rest, store all that finished.

        ``timeout`` is for the fetches (None: for ever); the store gets what is left of it, at
        least ``grace``. Both in seconds. ``caller`` is who waits for it. Returns the jobs of what
        was put back, and of what could not be stored.
        """
        timeout = None if timeout is None else max(0.0, timeout)
        deadline = monotonic() + (timeout or 0.0)
        if caller in self._threads:
            timeout = 0.0  # a fetch or a hook closes its own runner: it can't wait for itself
        self._quiet.wait(timeout)
        with self._lock:
            late = self._dispatch.abandon()
            self._quiet.set()  # another close waits for nothing more either
        self._store_rest(max(deadline, monotonic() + grace))
        with self._lock:
            dropped = self._dispatch.drop()
            self._release_all()
        self._join(0.1 if late or dropped else 1.0, caller)
        return [flight.claim.job_id for flight in late], [each.job_id for each in dropped]

    def _store_rest(self, deadline: float) -> None:
        """Lead exchanges, or wait for who leads one, until all is stored or time is up."""
        while True:
            with self._stored:
                now = monotonic()
                if now >= deadline or not (self._dispatch.asking or self._dispatch.unstored):
                    return
                ask = self._dispatch.ask(now)
                if ask is None:
                    self._stored.wait(min(deadline, self._dispatch.due()) - now)
            if ask is not None:
                self._lead(ask)

    def _join(self, seconds: float, caller: threading.Thread) -> None:
        """A thread whose fetch doesn't return is left behind; it is a daemon."""
        deadline = monotonic() + seconds
        for thread in self._threads:
            if thread is not caller and thread.ident is not None:
                thread.join(max(0.0, deadline - monotonic()))
