"""PostgreSQL, a database of a server of the session's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import URL, make_url

from batchmill.errors import StoreError, StoreFull, StoreUnavailable
from tests.support.database import LOG_TABLES, TABLES
from tests.support.server_database import ServerDatabase, one_transaction

_LOG_FINISH = """
CREATE FUNCTION log_finish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.status IN ('done', 'failed') AND OLD.status NOT IN ('done', 'failed') THEN
        INSERT INTO finish_log VALUES (
            NEW.job_id, NEW.idx,
            (SELECT token FROM batch_turn WHERE job_id = NEW.job_id), NEW.status
        );
    END IF;
    RETURN NEW;
END $$
"""
_ON_FINISH = """
CREATE TRIGGER log_finish BEFORE UPDATE OF status ON batch_target
    FOR EACH ROW EXECUTE FUNCTION log_finish()
"""
_ON_END = """
CREATE TRIGGER log_end AFTER UPDATE OF status ON batch_job
    FOR EACH ROW EXECUTE FUNCTION log_end()
"""
_LOG_END = """
CREATE FUNCTION log_end() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.status NOT IN ('queued', 'running') THEN
        INSERT INTO end_log VALUES (NEW.id, OLD.status || ' to ' || NEW.status);
    END IF;
    RETURN NEW;
END $$
"""
_FAULTS: dict[str, tuple[type[psycopg.Error], type[StoreError] | None]] = {
    "busy": (errors.DeadlockDetected, None),
    "serialisation": (errors.SerializationFailure, None),
    "lock timeout": (errors.LockNotAvailable, None),
    "full": (errors.DiskFull, StoreFull),
    "read-only": (errors.ReadOnlySqlTransaction, StoreUnavailable),
    "input/output": (errors.IoError, StoreUnavailable),
    "corrupt": (errors.IndexCorrupted, StoreUnavailable),
    "other": (errors.SyntaxError, StoreError),
}


class PostgresqlDatabase(ServerDatabase):
    """A database of its own."""

    kind = "postgresql"
    faults = {kind: ours for kind, (_, ours) in _FAULTS.items()}  # noqa: RUF012 - a constant
    in_a_hurry = "ALTER DATABASE {} SET synchronous_commit = off"
    last_turn = "(SELECT (last_value + 1) * 65536 FROM batch_turn_number)"
    triggers = (
        *LOG_TABLES,
        _LOG_FINISH,
        _LOG_END,
        _ON_FINISH,
        _ON_END,
    )
    impatient = {"connect_args": {"options": "-c lock_timeout=10ms"}}  # noqa: RUF012 - a constant

    def connect(self, url: URL | None = None) -> Any:
        """See :class:`ServerDatabase`."""
        url = (url or make_url(self.url)).set(drivername="postgresql")
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)

    def waiting(self) -> bool:
        """See :class:`Database`."""
        sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return bool(self.query(sql)[0][0])

    def sizes(self) -> tuple[int, int]:
        """See :class:`Database`; what is written ahead belongs to the whole server."""
        return self.query("SELECT pg_database_size(current_database())")[0][0], 0

    def writing(self) -> AbstractContextManager[Callable[..., Any]]:
        """See :class:`Database`; readers go on."""
        return one_transaction(self.connect(), f"LOCK TABLE {', '.join(TABLES)} IN EXCLUSIVE MODE")

    def fault(self, kind: str) -> BaseException:
        """See :class:`Database`."""
        return _FAULTS[kind][0](f"{kind}: not for anybody's eyes")

    def end_connection(self, connection: Any) -> None:
        """See :class:`ServerDatabase`."""
        pid = connection.info.backend_pid
        assert self.query("SELECT pg_terminate_backend(?, 5000)", pid) == [(True,)]

    def setting(self, forbidden: bool) -> str:
        """See :class:`ServerDatabase`; of the transaction that this statement begins."""
        return f"SET TRANSACTION READ {'ONLY' if forbidden else 'WRITE'}"
