"""MariaDB, a database of a server of the session's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import pymysql
from pymysql import err
from sqlalchemy import URL, make_url

from batchmill.errors import StoreError, StoreFull, StoreUnavailable
from tests.support.database import LOG_TABLES, TABLES
from tests.support.server_database import ServerDatabase, one_transaction, run_on

_LOG_FINISH = """
CREATE TRIGGER log_finish AFTER UPDATE ON batch_target FOR EACH ROW
    IF NEW.status IN ('done', 'failed') AND OLD.status NOT IN ('done', 'failed') THEN
        INSERT INTO finish_log VALUES (
            NEW.job_id, NEW.idx,
            (SELECT token FROM batch_turn WHERE job_id = NEW.job_id), NEW.status
        );
    END IF
"""
_LOG_END = """
CREATE TRIGGER log_end AFTER UPDATE ON batch_job FOR EACH ROW
    IF NEW.status NOT IN ('queued', 'running') AND NEW.status <> OLD.status THEN
        INSERT INTO end_log VALUES (NEW.id, concat(OLD.status, ' to ', NEW.status));
    END IF
"""
_FAULTS: dict[str, tuple[type[err.MySQLError], int, type[StoreError] | None]] = {
    "busy": (err.OperationalError, 1213, None),
    "lock timeout": (err.OperationalError, 1205, None),
    "changed": (err.OperationalError, 1020, None),
    "full": (err.OperationalError, 1114, StoreFull),
    "read-only": (err.OperationalError, 1792, StoreUnavailable),
    "input/output": (err.OperationalError, 1030, StoreUnavailable),
    "corrupt": (err.OperationalError, 1877, StoreUnavailable),
    "other": (err.ProgrammingError, 1064, StoreError),
}
_WAITING = """
SELECT count(*) FROM information_schema.processlist AS p
LEFT JOIN information_schema.innodb_trx AS t ON t.trx_mysql_thread_id = p.id
WHERE t.trx_state = 'LOCK WAIT' OR p.state = 'User lock'
"""


class MariadbDatabase(ServerDatabase):
    """A database of its own, whose default character set isn't the one that our texts need."""

    kind = "mariadb"
    faults = {kind: ours for kind, (_, _, ours) in _FAULTS.items()}  # noqa: RUF012 - a constant
    in_a_hurry = "SET GLOBAL innodb_flush_log_at_trx_commit = 2"
    last_turn = "(SELECT next_not_cached_value * 65536 FROM batch_turn_number)"
    triggers = (
        *(f"{table} COLLATE utf8mb4_nopad_bin" for table in LOG_TABLES),
        _LOG_FINISH,
        _LOG_END,
    )
    impatient = {  # noqa: RUF012 - a constant
        "connect_args": {"init_command": "SET lock_wait_timeout=0, innodb_lock_wait_timeout=0"}
    }

    def connect(self, url: URL | None = None) -> Any:
        """See :class:`ServerDatabase`."""
        url = url or make_url(self.url)
        return pymysql.connect(
            host=url.host,
            port=url.port or 3306,
            user=url.username,
            password=str(url.password),
            database=url.database,
            charset="utf8mb4",
            autocommit=True,
        )

    def waiting(self) -> bool:
        """See :class:`Database`."""
        return bool(self.query(_WAITING)[0][0])

    def sizes(self) -> tuple[int, int]:
        """See :class:`Database`; what is written ahead belongs to the whole server."""
        sql = "SELECT sum(data_length + index_length) FROM information_schema.tables"
        return int(self.query(f"{sql} WHERE table_schema = database()")[0][0]), 0

    def writing(self) -> AbstractContextManager[Callable[..., Any]]:
        """See :class:`Database`; every row that there is, and the gaps between them."""
        return one_transaction(
            self.connect(), *(f"SELECT 1 FROM {table} FOR UPDATE" for table in TABLES)
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See :class:`Database`; all of the tables, so that nobody can skip what is locked."""
        with closing(self.connect()) as connection:
            tables = ", ".join(f"{table} READ" for table in TABLES)
            run_on(connection, f"LOCK TABLES {tables}")
            yield

    def fault(self, kind: str) -> BaseException:
        """See :class:`Database`."""
        error, number, _ = _FAULTS[kind]
        return error(number, f"{kind}: not for anybody's eyes")

    def end_connection(self, connection: Any) -> None:
        """See :class:`ServerDatabase`."""
        self.query(f"KILL CONNECTION {connection.thread_id()}")

    def setting(self, forbidden: bool) -> str:
        """See :class:`ServerDatabase`; of the transactions that follow."""
        return f"SET SESSION TRANSACTION READ {'ONLY' if forbidden else 'WRITE'}"
