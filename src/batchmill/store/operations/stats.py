"""What a repository has answered, and what the store holds."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TypeVar

from batchmill.records import StoreStats
from batchmill.store.operations.common import total_bytes
from batchmill.store.statements import jobs, targets
from batchmill.store.tx import Tx

_T = TypeVar("_T")


class AccessCounts:
    """Hits and misses by accessor (spec/seed-000, rule 8); safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hits: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()

    def count(self, accessor: str, found: _T | None) -> _T | None:
        """Count an answer, None being a miss, and hand it on."""
        counts = self._misses if found is None else self._hits
        with self._lock:
            counts[accessor] += 1
        return found

    def snapshot(self) -> tuple[dict[str, int], dict[str, int]]:
        """Hits and misses so far."""
        with self._lock:
            return dict(self._hits), dict(self._misses)


def stats(tx: Tx, counts: AccessCounts) -> StoreStats:
    """The counts and the totals; scans both tables."""
    hits, misses = counts.snapshot()
    return StoreStats(
        hits=hits,
        misses=misses,
        jobs=dict(tx.rows(jobs.count_by_status)),
        targets=dict(tx.rows(targets.count_targets_by_status)),
        nbytes=total_bytes(tx),
        oldest_lease=tx.value(jobs.oldest_lease),
    )
