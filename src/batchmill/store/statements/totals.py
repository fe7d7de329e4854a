"""Statements on ``batch_total``: the byte total that is kept, not summed over jobs."""

from __future__ import annotations

from sqlalchemy import Executable, func, null, select, update

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import TOTAL, locked, next_number, number
from batchmill.store.statements.turns import NUMBERS


def add_and_number(_: Capabilities) -> Executable:
    """Add bytes and turns to the one shard; hands out the total and the last turn number."""
    return (
        update(TOTAL)
        .where(TOTAL.c.shard == 0)
        .values(nbytes=TOTAL.c.nbytes + number("bytes"), turns=TOTAL.c.turns + number("more_turns"))
        .returning(TOTAL.c.nbytes, TOTAL.c.turns)
    )


def add_bytes(_: Capabilities) -> Executable:
    """Add bytes to one of several shards."""
    added = update(TOTAL).where(TOTAL.c.shard == number("at_shard"))
    return added.values(nbytes=TOTAL.c.nbytes + number("bytes"))


def total_bytes(_: Capabilities) -> Executable:
    """The byte total over all shards."""
    return select(func.coalesce(func.sum(TOTAL.c.nbytes), 0))


def total_and_number(can: Capabilities) -> Executable:
    """The byte total, and the first of so many turn numbers: one look before what stores."""
    total = select(func.coalesce(func.sum(TOTAL.c.nbytes), 0)).scalar_subquery()
    return select(total, next_number(can) * NUMBERS)


def lock_evictions(can: Capabilities, skip: bool) -> Executable:
    """Let no other eviction count the same bytes; ``skip``: find nothing where one is at it."""
    return locked(can, select(TOTAL.c.shard).where(TOTAL.c.shard == -2), TOTAL, skip=skip)


def lock_caps(can: Capabilities) -> Executable:
    """Let no other submit count live jobs before this one has committed.

    Hands out the transaction's isolation level, NULL where every level is good for that.
    """
    level = func.current_setting("transaction_isolation") if can.snapshots else null()
    return locked(can, select(level).where(TOTAL.c.shard == -1), TOTAL)
