"""MemoryStore: the specification of a store, in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchmill.testing.memory_jobs import MemoryJobs
from batchmill.testing.memory_repository import MemoryRepository


class MemoryStore(MemoryRepository, MemoryJobs):
    """A repository and a JobStore that live in this process and end with it.

    Every rule that a SQL store keeps is here in its plainest form, whatever that costs: lists are
    sorted and bytes are summed anew each time. Safe to call from any thread; each call is atomic.
    ``clock`` is what ``now()`` answers, ``time.time`` unless given. ``within`` isn't supported.
    """


if TYPE_CHECKING:
    from batchmill.runner.protocol import JobStore

    _fits: JobStore = MemoryStore()
