"""What the demo's fetches and callers did, in the order in which they did it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from batchmill.cli.fetchers import WebFetcher
from batchmill.errors import RetryLater, TargetError
from batchmill.runner import FetchContext, Result, Target


@dataclass(frozen=True, slots=True)
class Turn:
    """One start of a target; ``busy`` once it came back to be tried again later."""

    caller: str
    job_id: str
    idx: int
    attempt: int
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something that somebody did."""

    caller: str
    text: str


class Journal:
    """Turns and events; ``on_event`` is called with each event, from the thread that it is of."""

    def __init__(self, on_event: Callable[[Event], object]) -> None:
        self._lock = threading.Lock()
        self._turns: list[Turn] = []
        self._events: list[Event] = []
        self._on_event = on_event

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All starts so far."""
        with self._lock:
            return tuple(self._turns)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far."""
        with self._lock:
            return tuple(self._events)

    def tell(self, caller: str, text: str) -> None:
        """Note an event."""
        event = Event(caller, text)
        with self._lock:
            self._events.append(event)
            self._on_event(event)

    def start(self, turn: Turn) -> int:
        """Note a start; its number, from 1."""
        with self._lock:
            self._turns.append(turn)
            return len(self._turns)

    def came_back_busy(self, number: int) -> None:
        """Note that the target of this start is to be tried again."""
        with self._lock:
            self._turns[number - 1] = replace(self._turns[number - 1], busy=True)


class JournalledFetch:
    """The built-in fetcher, each start noted down; the result's meta says which start it was.

    ``on_start`` is called before each fetch, by the thread of the fetch.
    """

    def __init__(
        self, fetcher: WebFetcher, journal: Journal, on_start: Callable[[Turn], object]
    ) -> None:
        self._fetcher = fetcher
        self._journal = journal
        self._on_start = on_start

    def __call__(self, context: FetchContext, caller: Any, target: Target) -> Result:
        """Fetch, and keep ``turn`` and ``attempt`` in what is stored."""
        turn = Turn(caller.name, context.job_id, context.idx, context.attempt)
        number = self._journal.start(turn)
        self._on_start(turn)
        try:
            result = self._fetcher(context, caller, target)
        except RetryLater as error:
            self._journal.came_back_busy(number)
            self._journal.tell(
                caller.name, f"target {context.idx}: {error}; it goes back and is tried again"
            )
            raise
        except TargetError as error:
            self._journal.tell(caller.name, f"target {context.idx} fails: {error}")
            raise
        meta = {**result.meta, "turn": number, "attempt": context.attempt}
        return Result(result.content, meta)
