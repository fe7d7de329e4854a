"""Statements on ``batch_total``: the byte total that is kept, not summed over jobs."""

from __future__ import annotations

from sqlalchemy import Executable, func, select, update

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import TOTAL, number


def add_to_total(_: Capabilities) -> Executable:
    """Add bytes and turns; hands out the total and the last turn number."""
    return (
        update(TOTAL)
        .where(TOTAL.c.shard == 0)
        .values(nbytes=TOTAL.c.nbytes + number("bytes"), turns=TOTAL.c.turns + number("more_turns"))
        .returning(TOTAL.c.nbytes, TOTAL.c.turns)
    )


def total_bytes(_: Capabilities) -> Executable:
    """The byte total over all shards."""
    return select(func.coalesce(func.sum(TOTAL.c.nbytes), 0))
