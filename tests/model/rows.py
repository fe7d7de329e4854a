"""What a SQL store holds, by raw SQL over a connection that the store knows nothing of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batchmill.store import BatchRepository
from tests.support.database import TABLES, Database

Row = dict[str, Any]

JOB = "id caller caller_class idem_key status error targets_total targets_done created_at lease"
TARGET = "job_id idx url options status error hint attempt lost nbytes result"
TURN = "job_id turn next_idx targets_failed ready_at busy_since queue home holder token held_until"


@dataclass(frozen=True, slots=True)
class Rows:
    """Every row: jobs, turns and runners by id, targets by job and index, and the kept numbers."""

    jobs: dict[str, Row]
    targets: dict[tuple[str, int], Row]
    turns: dict[str, Row]
    runners: dict[str, Row]
    total_bytes: int
    last_turn: int

    def of_job(self, job_id: str) -> list[Row]:
        """The job's targets in order."""
        return [row for (owner, _), row in sorted(self.targets.items()) if owner == job_id]


class Bench:
    """A database for many examples: emptied for each, and read beside the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._engine = database.engine()

    def empty_store(self) -> BatchRepository:
        """A store without rows and without counted answers."""
        with self._database.writing() as run:
            for table in reversed(TABLES[:-1]):
                run(f"DELETE FROM {table}")
            run("UPDATE batch_total SET nbytes = 0, turns = 0")
        return BatchRepository(self._engine)

    def rows(self) -> Rows:
        """All rows as they stand."""
        ((total_bytes, last_turn),) = self._database.query(
            f"SELECT SUM(nbytes), {self._database.last_turn} FROM batch_total"
        )
        targets = self._read("batch_target", TARGET)
        return Rows(
            jobs={row["id"]: row for row in self._read("batch_job", f"{JOB} nbytes")},
            targets={(row["job_id"], row["idx"]): row for row in targets},
            turns={row["job_id"]: row for row in self._read("batch_turn", TURN)},
            runners={row["id"]: row for row in self._read("batch_runner", "id seen_at hold_for")},
            total_bytes=int(total_bytes),
            last_turn=int(last_turn),
        )

    def _read(self, table: str, columns: str) -> list[Row]:
        names = columns.split()
        found = self._database.query(f"SELECT {', '.join(names)} FROM {table}")
        return [dict(zip(names, row, strict=True)) for row in found]
