"""The SQL store: the only part of batchmill that knows SQLAlchemy."""

from batchmill.store import migrate
from batchmill.store.engine import create_store_engine
from batchmill.store.models import (
    BatchJobRow,
    BatchRunnerRow,
    BatchTargetRow,
    BatchTotalRow,
    BatchTurnRow,
    metadata,
)
from batchmill.store.repository import BatchRepository

__all__ = [
    "BatchJobRow",
    "BatchRepository",
    "BatchRunnerRow",
    "BatchTargetRow",
    "BatchTotalRow",
    "BatchTurnRow",
    "create_store_engine",
    "metadata",
    "migrate",
]
