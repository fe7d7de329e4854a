"""The state machine of a runner: free slots, finished work, what to ask the store next.

No I/O, no thread, no lock and no clock in here: a shell (threads today) calls it under a lock of
its own and says what time it is. ``now`` is any clock that only goes forward, in seconds.

A shell delivers each outcome; when ``ask`` answers, it runs that one exchange and reports what
came of it to ``answer`` or ``failed``. While one exchange is under way ``ask`` answers None, so
whatever is delivered meanwhile goes together into the next one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from batchmill.records import Claim, Exchange, Outcome
from batchmill.runner.pauses import backoff
from batchmill.runner.rules import put_back

SHORTEST_WAIT: Final = 0.002
"""Seconds between two looks at a store that says that work is due soon: no hot loop."""


@dataclass(slots=True, eq=False)
class Flight:
    """A claim in this runner's hands, from the exchange that claimed to the one that stored it.

    ``context`` is the shell's, for the fetch. ``error``, ``seconds`` and ``result_bytes`` are
    set by who fetched, for the hooks.
    """

    claim: Claim
    context: Any = None
    delivered: bool = False
    error: BaseException | None = None
    seconds: float = 0.0
    result_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """One exchange to run: what finished, and how many targets to claim."""

    outcomes: tuple[Outcome, ...]
    want: int


@dataclass(frozen=True, slots=True)
class Landed:
    """An outcome that an exchange has dealt with, and the flight that it ended."""

    outcome: Outcome
    flight: Flight


@dataclass(slots=True)
class Dispatch:
    """What one runner has in its hands; ``slots`` is how many targets it fetches at a time."""

    slots: int
    poll_interval: float
    flights: dict[str, Flight] = field(default_factory=dict)
    stopping: bool = False
    asking: bool = False
    dry: bool = False
    """The last exchange found nothing to claim now or later, and nothing is in flight."""
    _busy: int = 0
    _finished: list[Outcome] = field(default_factory=list)
    _woken: bool = True
    _poll_at: float = -math.inf
    _not_before: float = -math.inf
    _failures: int = 0
    _ended: bool = False

    @property
    def free(self) -> int:
        """Slots with nothing to fetch."""
        return self.slots - self._busy

    @property
    def busy(self) -> int:
        """Targets handed out whose outcome has not been delivered."""
        return self._busy

    @property
    def unstored(self) -> bool:
        """True while an outcome is delivered that no exchange has taken yet."""
        return bool(self._finished)

    def deliver(self, outcome: Outcome) -> bool:
        """A fetch has ended; False when nobody waits for it any more, so that it is dropped."""
        flight = self.flights.get(outcome.token)
        if flight is None or flight.delivered:
            return False
        flight.delivered = True
        self._busy -= 1
        self._finished.append(outcome)
        return True

    def wake(self) -> None:
        """There may be new work: a free slot asks at once."""
        self._woken = True
        self.dry = False

    def due(self) -> float:
        """When the next exchange should run; infinity while one is under way or none is needed."""
        if self.asking:
            return math.inf
        if self._finished:
            return self._not_before
        if self.stopping or self.free <= 0:
            return math.inf
        if self._woken:
            return self._not_before
        return max(self._poll_at, self._not_before)

    def ask(self, now: float) -> Ask | None:
        """The exchange to run now, None when there is none or one is under way."""
        if self.due() > now:
            return None
        self.asking = True
        want = 0 if self.stopping else self.free
        if want:
            self._woken = False
        ask = Ask(tuple(self._finished), want)
        self._finished.clear()
        return ask

    def answer(
        self, ask: Ask, exchange: Exchange, *, now: float, ready_in: float | None
    ) -> tuple[list[Landed], list[Flight]]:
        """The exchange was made: what it ended, and what to fetch now.

        ``ready_in`` is the seconds until the next waiting target is ready, None when none is.
        What it claimed although the runner stops is put back by the next exchange.
        """
        self.asking = False
        self._failures, self._not_before = 0, -math.inf
        landed = [Landed(each, self.flights.pop(each.token)) for each in ask.outcomes]
        claimed = [Flight(claim) for claim in exchange.claims]
        self.flights.update((flight.claim.token, flight) for flight in claimed)
        self._busy += len(claimed)
        self._poll_at = now + self._pause(ready_in)
        if ask.want and not self._woken:
            self.dry = not self.flights and ready_in is None
        if self.stopping:
            self._give_back(claimed)
            claimed = []
        return landed, claimed

    def _pause(self, ready_in: float | None) -> float:
        if ready_in is None:
            return self.poll_interval
        return min(max(ready_in, SHORTEST_WAIT), self.poll_interval)

    def failed(self, ask: Ask, *, now: float, jitter: float) -> float | None:
        """The exchange could not be made: what finished is kept and tried again.

        ``jitter`` is from 0 to 1, so that runners don't come back all at once. Returns the
        seconds until the next try, which grow with each failure up to ``pauses.LONGEST_PAUSE``,
        and None where the runner has ended meanwhile: then nothing is kept.
        """
        self.asking = False
        if self._ended:
            return None
        self._finished[:0] = ask.outcomes
        self._woken = True
        pause = backoff(self._failures, jitter)
        self._failures += 1
        self._not_before = now + pause
        return pause

    def retry(self) -> None:
        """The store has answered somebody: the next exchange needn't wait out its pause."""
        self._not_before = -math.inf

    def stop(self) -> None:
        """No more claims; what is in flight may still be delivered and is stored, at once."""
        self.stopping = True
        self._not_before = -math.inf

    def abandon(self) -> list[Flight]:
        """Put back all that is still being fetched, so that a late outcome is dropped."""
        late = [flight for flight in self.flights.values() if not flight.delivered]
        self._give_back(late)
        return late

    def _give_back(self, flights: Iterable[Flight]) -> None:
        for flight in flights:
            self.deliver(put_back(flight.claim))

    def drop(self) -> list[Outcome]:
        """Give up what could not be stored, now or later; the holds lapse by themselves."""
        self._ended = True
        dropped, self._finished = self._finished, []
        return dropped

    def tokens(self) -> list[str]:
        """The holds to renew: all that is not stored yet."""
        return list(self.flights)
