"""What operations share: rows to records, lists to parameters, the kept total."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from batchmill.errors import StoreError
from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.store.statements import totals
from batchmill.store.transactions import Row, Tx


class Total(NamedTuple):
    """The byte total, and the first of the turn numbers that were asked for."""

    nbytes: int
    first_turn: int


def add_to_total(tx: Tx, *, nbytes: int = 0, turns: int = 0) -> Total:
    """Add to the byte total, and number so many turns; each number is higher than any before."""
    row = tx.row(totals.add_to_total, bytes=nbytes, more_turns=turns)
    if row is None:
        raise StoreError("the row of batch_total is missing; run batchmill.store.migrate.upgrade")
    return Total(row[0], row[1] - turns + 1)


def listed(values: Iterable[str | int]) -> str:
    """A list as one parameter; see :func:`batchmill.store.statements.common.among`."""
    return json.dumps(list(values))


def to_job(row: Row) -> BatchJob:
    """A row of ``batch_job``, whose columns stand in the record's order."""
    job_id, caller, caller_class, idem_key, status, *rest = row
    return BatchJob(job_id, caller, caller_class, idem_key, JobStatus(status), *rest)


def to_target(row: Row) -> BatchTarget:
    """A row of ``statements.targets.target_page``."""
    job_id, idx, url, options, status, result, error, hint = row
    return BatchTarget(job_id, idx, url, options, TargetStatus(status), result, error, hint)
