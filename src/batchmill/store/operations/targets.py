"""Targets: store, read page by page, write one by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from batchmill.errors import InvalidTransition, TargetExists, TargetNotFound
from batchmill.records import BatchTarget, TargetStatus, status_of_finished, stored_bytes
from batchmill.store.operations.common import add_bytes, number_turn, to_targets
from batchmill.store.operations.jobs import not_found
from batchmill.store.statements import jobs, targets, turns
from batchmill.store.tx import Call, Tx
from batchmill.validation import MAX_COUNT


def put_targets(tx: Tx, job_id: str, new: Sequence[BatchTarget]) -> None:
    """Add targets to a job made by ``create_job``; what they hold is counted."""
    turn = tx.row(turns.lock_turn, job_id=job_id)
    if tx.row(jobs.lock_job, job_id=job_id) is None:
        raise not_found()
    if turn is not None:
        raise InvalidTransition("targets: those of a submitted job are fixed; submit another job")
    if not new:
        return
    idxs = tx.listed(target.idx for target in new)
    if tx.row(targets.known_indexes, job_id=job_id, idxs=idxs) is not None:
        raise TargetExists("targets: the job already has a target of one of these indexes")
    tx.run_all(*inserting_targets(tx, new))
    done = sum(target.status.finished for target in new)
    nbytes = sum(stored_bytes(target.result) for target in new)
    if done or nbytes:  # what is stored as given may have a result before its end
        tx.run(jobs.add_to_counters, job_id=job_id, done=done, bytes=nbytes)
        add_bytes(tx, nbytes)


def inserting_targets(tx: Tx, new: Sequence[BatchTarget]) -> list[Call]:
    """What stores the rows themselves."""
    rows = [
        {
            "job_id": target.job_id,
            "idx": target.idx,
            "url": target.url,
            "options": target.options,
            "status": target.status.value,
            "error": target.error,
            "hint": target.hint,
            "nbytes": stored_bytes(target.result),
            "result": target.result,
        }
        for target in new
    ]
    return tx.many(targets.insert_target, rows)


def inserting_pending(tx: Tx, new: Sequence[BatchTarget]) -> list[Call]:
    """What stores the targets of a new job, of which only these columns say anything."""
    rows = [
        {"job_id": each.job_id, "idx": each.idx, "url": each.url, "options": each.options}
        for each in new
    ]
    return tx.many(targets.insert_pending, rows)


def get_targets(
    tx: Tx,
    job_id: str,
    start: int,
    limit: int | None,
    *,
    with_results: bool,
    max_bytes: int | None,
) -> list[BatchTarget] | None:
    """A page of a job's targets in order, None for an unknown job."""
    most = MAX_COUNT if limit is None else limit
    by_bytes = max_bytes is not None and with_results and most > 1
    bound = {"max_bytes": max_bytes} if by_bytes else {}
    page = tx.rows(
        targets.target_page, with_results, by_bytes, job_id=job_id, start=start, limit=most, **bound
    )
    if not page and tx.row(jobs.job_state, job_id=job_id) is None:
        return None
    return to_targets(job_id, page)


@dataclass(frozen=True, slots=True)
class TargetWrite:
    """One call of ``update_target``."""

    job_id: str
    idx: int
    status: TargetStatus
    result: str | None
    error: str | None
    hint: str | None
    lease: int


def update_target(tx: Tx, write: TargetWrite) -> None:
    """Write a target by hand: the row, the job's counters and lease, the total, the rotation."""
    turn = tx.row(turns.lock_turn, job_id=write.job_id)
    tx.row(jobs.lock_job, job_id=write.job_id)
    state = tx.row(targets.target_state, job_id=write.job_id, idx=write.idx)
    if state is None:
        raise TargetNotFound("idx: the job has no target of this index, or there is no such job")
    before, bytes_before = TargetStatus(state[0]), int(state[1])
    _check_transition(write, before, turn)
    nbytes = stored_bytes(write.result)
    tx.run(
        targets.write_target,
        False,
        of_job=write.job_id,
        at_idx=write.idx,
        status=write.status.value,
        error=write.error,
        hint=write.hint,
        started=int(write.status is TargetStatus.RUNNING and before is not TargetStatus.RUNNING),
        losses=0,
        nbytes=nbytes,
        result=write.result,
    )
    newly = int(write.status.finished and not before.finished)
    tx.run(jobs.add_to_counters, job_id=write.job_id, done=newly, bytes=nbytes - bytes_before)
    tx.run(jobs.touch_job, job_id=write.job_id, lease=write.lease)
    if turn is not None and write.status.finished:
        _move_on(tx, write, before, turn)
    if nbytes != bytes_before:
        add_bytes(tx, nbytes - bytes_before)


def _check_transition(
    write: TargetWrite, before: TargetStatus, turn: tuple[object, ...] | None
) -> None:
    """Finished stays finished; what a runner holds is the runner's to write."""
    if before.finished and not write.status.finished:
        raise InvalidTransition(
            f"status: the target is {before.value}; it can't become {write.status.value} again"
        )
    if turn is None:
        return
    if turn[2] is not None and turn[0] == write.idx:
        raise InvalidTransition("idx: a runner has this target in flight; wait until it is stored")
    if write.status is TargetStatus.RUNNING:
        raise InvalidTransition("status: only a runner starts the targets of a submitted job")


def _move_on(tx: Tx, write: TargetWrite, before: TargetStatus, turn: tuple[Any, ...]) -> None:
    """Keep a submitted job's turn true, and settle the job after its last target.

    Only storing the target whose turn it is moves the rotation on.
    """
    next_idx, failed, _ = turn
    failed += (write.status is TargetStatus.FAILED) - (before is TargetStatus.FAILED)
    if write.idx != next_idx:
        tx.run(turns.count_failed, of_job=write.job_id, targets_failed=failed)
        return
    following = tx.value(targets.lowest_pending, job_id=write.job_id, start=next_idx)
    if following is None:
        _settle(tx, write, failed)
        return
    tx.run(
        turns.move_turn,
        of_job=write.job_id,
        turn=number_turn(tx),
        next_idx=following,
        targets_failed=failed,
    )


def _settle(tx: Tx, write: TargetWrite, failed: int) -> None:
    """The last target is stored: set the terminal status."""
    total = tx.value(jobs.targets_total, job_id=write.job_id)
    status = status_of_finished(total, failed)
    tx.run(jobs.set_status, job_id=write.job_id, status=status.value, error="", lease=write.lease)
    tx.run(turns.delete_turns, job_ids=tx.listed([write.job_id]))
