"""What time it is for the store."""

from __future__ import annotations

import time

from batchmill.store.tx import Tx


def now(tx: Tx) -> float:
    """Unix seconds by the database's own clock, by this host's where it is a local file."""
    if tx.can.clock is None:
        return time.time()
    return float(tx.connection.exec_driver_sql(tx.can.clock).scalar_one())
