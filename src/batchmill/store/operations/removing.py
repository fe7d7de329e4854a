"""Deleting whole jobs: by time, by bytes, by id; each call one short step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from batchmill.store.operations.common import add_bytes, total_bytes, total_is_missing
from batchmill.store.statements import jobs, targets, totals, turns
from batchmill.store.tx import Build, Tx

STEP_JOBS: Final = 25
"""Jobs that one transaction deletes at the most, so that no writer waits long for it."""
STEP_TARGETS: Final = 1000
"""Targets that one transaction deletes at the most, but for a single larger job."""
STEP_BYTES: Final = 2 * 1024 * 1024
"""Bytes of results that one transaction deletes at the most, but for a single larger job.

SQLite walks each page of a large value to free it: measured, 7 ms a megabyte.
"""


class _Doomed(NamedTuple):
    """A job to delete."""

    job_id: str
    targets: int
    nbytes: int


class Step(NamedTuple):
    """What one step deleted, and whether another may find more."""

    removed: int
    more: bool


def anything_expired(tx: Tx, expired: int, now_ms: int) -> bool:
    """Whether a sweep would find a job; only reads, so that most sweeps take no write lock."""
    return tx.row(jobs.expired_jobs, expired=expired, now_ms=now_ms, limit=1) is not None


def sweep_step(tx: Tx, expired: int, now_ms: int, limit: int | None) -> Step:
    """Delete some of the jobs whose lease is ``expired`` or older."""
    most = _most(limit)
    found = tx.rows(jobs.expired_jobs, expired=expired, now_ms=now_ms, limit=most)
    chosen = _within_step([_Doomed(*row) for row in found])
    ours = _locked(tx, chosen, jobs.lock_expired, now_ms=now_ms, expired=expired)
    _remove(tx, ours)
    return Step(len(ours), bool(ours) and (len(chosen) < len(found) or len(found) == most))


def evict_step(
    tx: Tx, max_bytes: int, spared: Collection[str], limit: int | None, *, wait: bool = True
) -> Step:
    """Delete some of the finished jobs, oldest lease first, until the total fits.

    One eviction at a time: two that saw the same total would delete twice what is needed. With
    ``wait`` false, one that is under way is left to it: a transaction that holds other locks must
    not wait for it.
    """
    if tx.row(totals.lock_evictions, not wait) is None:
        if wait:
            raise total_is_missing()
        return Step(0, True)
    total = total_bytes(tx)
    if total <= max_bytes:
        return Step(0, False)
    found = tx.rows(jobs.evictable_jobs, spared=tx.listed(spared), limit=_most(limit))
    chosen = _within_step(_until_it_fits([_Doomed(*row) for row in found], total - max_bytes))
    ours = _locked(tx, chosen, jobs.lock_ended, now_ms=None)
    _remove(tx, ours)
    left = total - sum(job.nbytes for job in ours)
    return Step(len(ours), bool(ours) and left > max_bytes)


def delete_job(tx: Tx, job_id: str) -> bool:
    """Delete one job, whatever its status."""
    tx.row(turns.lock_turn, job_id=job_id)
    nbytes = tx.value(jobs.bytes_of_job, job_id=job_id)
    if nbytes is None:
        return False
    _remove(tx, [_Doomed(job_id, 0, nbytes)])
    return True


def _locked(
    tx: Tx, chosen: Sequence[_Doomed], lock: Build, *, now_ms: int | None, **params: int
) -> list[_Doomed]:
    """Those of the chosen jobs that nobody else works on, and that are still to go.

    Where the write lock is the file's, that is all of them. Elsewhere turns are locked before
    jobs, as by every other transaction, and what was read before the locks is looked at again.
    """
    if not (tx.can.row_locks and chosen):
        return list(chosen)
    job_ids = tx.listed(job.job_id for job in chosen)
    free = {job_id for (job_id,) in tx.rows(turns.lock_free_turns, job_ids=job_ids)}
    busy = {
        job_id
        for job_id, held_until in tx.rows(turns.turns_of_jobs, job_ids=job_ids)
        if job_id not in free or (now_ms is not None and (held_until or now_ms) > now_ms)
    }
    job_ids = tx.listed(job.job_id for job in chosen if job.job_id not in busy)
    return [_Doomed(*row) for row in tx.rows(lock, job_ids=job_ids, **params)]


def _most(limit: int | None) -> int:
    return STEP_JOBS if limit is None else min(limit, STEP_JOBS)


def _until_it_fits(candidates: Sequence[_Doomed], excess: int) -> list[_Doomed]:
    chosen = []
    for job in candidates:
        if excess <= 0:
            break
        chosen.append(job)
        excess -= job.nbytes
    return chosen


def _within_step(candidates: Sequence[_Doomed]) -> list[_Doomed]:
    """The first of the candidates whose targets one step may delete, one job at the least."""
    size, nbytes = 0, 0
    for position, job in enumerate(candidates):
        size, nbytes = size + job.targets, nbytes + job.nbytes
        if position and (size > STEP_TARGETS or nbytes > STEP_BYTES):
            return list(candidates[:position])
    return list(candidates)


def _remove(tx: Tx, chosen: Sequence[_Doomed]) -> None:
    """Delete rows of every table in so many words: a connection may have foreign keys off."""
    if not chosen:
        return
    job_ids = tx.listed(job.job_id for job in chosen)
    tx.run(targets.delete_targets, job_ids=job_ids)
    tx.run(turns.delete_turns, job_ids=job_ids)
    tx.run(jobs.delete_jobs, job_ids=job_ids)
    freed = sum(job.nbytes for job in chosen)
    if freed:
        add_bytes(tx, -freed)
