"""What operations share: rows to records, lists to parameters, the kept total."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from batchmill.errors import StoreError
from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.store.statements import totals, turns
from batchmill.store.tx import Call, Row, Tx, call
from batchmill.store.wire import Expected

_STATUSES: Final = {status.value: status for status in TargetStatus}


class Total(NamedTuple):
    """The byte total, and the first of the turn numbers that were asked for."""

    nbytes: int
    first_turn: int


def add_and_number(tx: Tx, *, nbytes: int = 0, numbers: int = 0) -> Total:
    """Add to the one shard of the total, and number so many turns, in one statement."""
    row = tx.row(totals.add_and_number, bytes=nbytes, more_turns=numbers)
    if row is None:
        raise total_is_missing()
    return Total(row[0], row[1] - numbers + 1)


def add_bytes(tx: Tx, nbytes: int) -> None:
    """Add to the byte total.

    Where rows are locked, nothing else is locked after it: it comes last in its transaction.
    """
    if tx.can.sequences:
        tx.run_all(adding_bytes(tx, nbytes))
    else:
        add_and_number(tx, nbytes=nbytes)


def adding_bytes(tx: Tx, nbytes: int) -> Call:
    """What adds to the byte total where it has shards."""
    added = call(totals.add_bytes, at_shard=tx.shard, bytes=nbytes)
    return added._replace(expected=Expected(1, _TOTAL_IS_MISSING))


_TOTAL_IS_MISSING: Final = (
    "a row of batch_total is missing; restore the rows -2 to 7, with their bytes"
)


def total_is_missing() -> StoreError:
    """The error for a database in which somebody deleted the rows that an upgrade put there."""
    return StoreError(_TOTAL_IS_MISSING)


def number_turn(tx: Tx) -> int:
    """A turn number higher than any before."""
    if tx.can.sequences:
        return int(tx.value(turns.fresh_number))
    return add_and_number(tx, numbers=1).first_turn


def total_bytes(tx: Tx) -> int:
    """The kept byte total."""
    return int(tx.value(totals.total_bytes))


def to_job(row: Row) -> BatchJob:
    """A row of ``batch_job``, whose columns stand in the record's order."""
    job_id, caller, caller_class, idem_key, status, *rest = row
    return BatchJob(job_id, caller, caller_class, idem_key, JobStatus(status), *rest)


def to_targets(job_id: str, page: Iterable[Row]) -> list[BatchTarget]:
    """The rows of ``statements.targets.target_page``; an unknown status is a ValueError."""
    known = _STATUSES.get
    return [
        BatchTarget(
            job_id, idx, url, options, known(status) or TargetStatus(status), result, error, hint
        )
        for idx, url, options, status, result, error, hint in page
    ]
