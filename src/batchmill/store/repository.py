"""BatchRepository: checks what comes in, opens a transaction, calls an operation."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session, scoped_session

from batchmill.errors import InvalidInput
from batchmill.record_checks import check_job, check_targets, check_written
from batchmill.records import BatchJob, BatchTarget, JobStatus, StoreStats, TargetStatus
from batchmill.store.engine import check_engine
from batchmill.store.operations import clock, jobs, removing, stats
from batchmill.store.operations import targets as target_rows
from batchmill.store.operations.common import total_bytes
from batchmill.store.queue import QueueRepository
from batchmill.store.transactions import BoundTransactions, OwnTransactions
from batchmill.store.tx import Compiler
from batchmill.validation import (
    check_count,
    check_flag,
    check_id,
    check_job_status,
    check_limit,
    check_max_bytes,
    check_name,
    check_seconds,
    check_target_status,
    check_text,
    check_ttl,
    to_ms,
)


class BatchRepository(QueueRepository):
    """A durable store of batch jobs in SQL: all of it, the runner's half included.

    Every call is a transaction of its own, safe from any thread; ``now`` is unix seconds, int or
    float, floored before it is compared or stored as a lease. Every method may raise
    ``StoreError`` (``StoreBusy``, ``StoreUnavailable``, ``StoreFull``, ``NotMigrated``), and
    ``InvalidInput`` for an argument that can't be stored. The tables are made by
    :func:`batchmill.store.migrate.upgrade`, never by the repository.
    """

    def __init__(self, engine: Engine, *, schema: str | None = None) -> None:
        """Use an engine, best of :func:`create_store_engine`; nothing is connected yet.

        ``schema`` names the schema of the tables on PostgreSQL, whatever the search path of a
        connection is; None for the one that the path finds. Raises ``InvalidInput`` for an engine
        that can't serve a store, and for a schema where the database has none.
        """
        if not isinstance(engine, Engine):
            raise InvalidInput(f"engine: must be an Engine, not {type(engine).__name__}")
        check_engine(engine)
        compiler = Compiler(engine, schema)
        self.engine = engine
        self.schema: str | None = compiler.schema
        self._compiler = compiler
        self._counts = stats.AccessCounts()
        self._submitted = set()
        self._transactions = OwnTransactions(engine, compiler)

    def bound_to(self, within: Connection | Session | scoped_session[Any]) -> BatchRepository:
        """A repository that works inside the application's own transaction and never commits.

        What it writes is committed or rolled back with everything else there; each call is
        behind a savepoint, so that one that raises leaves nothing. On SQLite the first write
        takes the file's write lock, and it lasts, as the caps of a submit do, until the
        application commits; begin with a write, or with the repository, rather than with a read
        that another writer may outdate (``StoreBusy``). Nothing in it opens a second connection.
        Where the database has no room left (``StoreFull``), all of the transaction may be gone:
        then nothing more can be done in it. A write raises ``InvalidInput`` for a connection in
        autocommit, which has no transaction to work in.
        """
        session = within() if isinstance(within, scoped_session) else within
        if not isinstance(session, Connection | Session):
            raise InvalidInput(
                f"within: must be a Connection or a Session, not {type(within).__name__}"
            )
        bound = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._transactions = BoundTransactions(session, self._compiler)
        return bound

    def create_job(self, job: BatchJob) -> None:
        """Store a job as given: the application sets every field (spec/seed-000, rule 1).

        Its ``nbytes`` count in :meth:`nbytes`. It has no turn: no runner takes it, and its status
        changes only by :meth:`set_job_status`. Raises ``JobExists``.
        """
        new = check_job(job)
        self._transactions.write(lambda tx: jobs.create_job(tx, new))

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None:
        """The job, None when there is none; ``touch_at`` also sets its lease (seed-000, rule 1)."""
        job_id = check_id("job_id", job_id)
        if touch_at is None:
            found = self._transactions.read(lambda tx: jobs.get_job(tx, job_id))
        else:
            lease = check_seconds("touch_at", touch_at)
            found = self._transactions.write(lambda tx: jobs.touch_and_get_job(tx, job_id, lease))
        return self._counts.count("get_job", found)

    def find_job_by_idem_key(
        self, caller: str, idem_key: str, *, now: float, ttl: timedelta
    ) -> str | None:
        """The id of the newest queued, running, done or partial job of this caller and key.

        A job answers until ``lease + ttl <= now``. The lease stays as it is.
        """
        caller = check_name("caller", caller)
        idem_key = check_name("idem_key", idem_key)
        at, lasts = check_seconds("now", now), check_ttl("ttl", ttl)
        found = self._transactions.read(lambda tx: jobs.find_job(tx, caller, idem_key, at, lasts))
        return self._counts.count("find_job_by_idem_key", found)

    def count_live_jobs(self, caller: str | None = None) -> int:
        """How many jobs are queued or running, of one caller or (None) of all."""
        if caller is not None:
            caller = check_name("caller", caller)
        return self._transactions.read(lambda tx: jobs.count_live(tx, caller))

    def put_targets(self, job_id: str, targets: Iterable[BatchTarget]) -> None:
        """Add targets to a job made by :meth:`create_job`, all or none.

        What they hold counts in the job's ``targets_done`` and ``nbytes``; its lease and
        ``targets_total`` stay. Raises ``JobNotFound``, ``TargetExists``, and
        ``InvalidTransition`` for a submitted job.
        """
        job_id = check_id("job_id", job_id)
        new = check_targets(job_id, targets)
        self._transactions.write(lambda tx: target_rows.put_targets(tx, job_id, new))

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None:
        """The targets from index ``start`` on, in order; None for an unknown job.

        ``limit`` bounds the rows (None: all). With ``max_bytes`` the page ends before the target
        whose result would take the results over it, but has at least one. Without results, no
        result is read, and each is None.
        """
        job_id = check_id("job_id", job_id)
        start = check_count("start", start)
        limit = check_limit("limit", limit)
        check_flag("with_results", with_results)
        if max_bytes is not None:
            check_max_bytes("max_bytes", max_bytes)
        found = self._transactions.read(
            lambda tx: target_rows.get_targets(
                tx, job_id, start, limit, with_results=with_results, max_bytes=max_bytes
            )
        )
        return self._counts.count("get_targets", found)

    def update_target(
        self,
        job_id: str,
        idx: int,
        *,
        now: float,
        status: TargetStatus | str,
        result: str | None = None,
        error: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Write one target by hand (spec/seed-000, rule 3).

        ``targets_done`` rises once when it becomes done or failed, ``nbytes`` changes by the
        difference, the lease becomes ``now``. done and failed may be written again; only they
        have a result, an error or a hint. On a submitted job this moves the rotation on and
        settles the job after its last target. Raises ``TargetNotFound``; ``InvalidTransition``
        for a finished target that would be unfinished again, for one that a runner holds, and
        for starting one of a submitted job.
        """
        job_id = check_id("job_id", job_id)
        idx = check_count("idx", idx)
        wanted = check_target_status("status", status)
        texts = check_written(wanted, result, error, hint)
        write = target_rows.TargetWrite(job_id, idx, wanted, *texts, check_seconds("now", now))
        self._transactions.write(lambda tx: target_rows.update_target(tx, write))

    def set_job_status(
        self, job_id: str, status: JobStatus | str, *, now: float, error: str = ""
    ) -> None:
        """Set status, error and lease.

        A terminal status is final, and acts on a submitted job as a cancel does. Raises
        ``JobNotFound``, and ``InvalidTransition`` for another status than a final one.
        """
        job_id = check_id("job_id", job_id)
        error = check_text("error", error)
        wanted, lease = check_job_status("status", status), check_seconds("now", now)
        self._transactions.write(lambda tx: jobs.set_status(tx, job_id, wanted, error, lease))

    def touch_job(self, job_id: str, *, now: float) -> None:
        """Set the lease to ``now``; raises ``JobNotFound``."""
        job_id = check_id("job_id", job_id)
        lease = check_seconds("now", now)
        self._transactions.write(lambda tx: jobs.touch_job(tx, job_id, lease))

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        """Delete every job with ``lease + ttl <= now``, live ones too; how many.

        Not one on which a hold still stands (design.md section 3). It works in short
        transactions, each committed by itself; ``limit`` bounds the jobs of this call (None: all).
        """
        at, at_ms = check_seconds("now", now), to_ms(now)
        expired = at - check_ttl("ttl", ttl)
        limit = check_limit("limit", limit)
        if not self._transactions.read(lambda tx: removing.anything_expired(tx, expired, at_ms)):
            return 0
        return self._in_steps(lambda tx, most: removing.sweep_step(tx, expired, at_ms, most), limit)

    def evict_oldest(self, *, max_bytes: int, limit: int | None = None) -> int:
        """Delete finished jobs, oldest lease first, until the total fits; how many.

        Never a live one (spec/seed-000, rule 5). It works in short transactions, each committed
        by itself; ``limit`` bounds the jobs of this call (None: as many as it takes).
        """
        check_max_bytes("max_bytes", max_bytes)
        limit = check_limit("limit", limit)
        if self.nbytes() <= max_bytes:
            return 0
        return self._in_steps(lambda tx, most: removing.evict_step(tx, max_bytes, (), most), limit)

    def mark_in_flight_failed(self, reason: str, *, now: float) -> int:
        """Fail every live job with this error; how many (spec/seed-000, rule 6).

        Running targets are pending again, counters stay, late outcomes are refused. For the start
        of an application whose one process owns the database: it fails the jobs of other
        processes as well.
        """
        reason = check_text("reason", reason)
        lease = check_seconds("now", now)
        return self._transactions.write(lambda tx: jobs.fail_live_jobs(tx, reason, lease))

    def nbytes(self) -> int:
        """The sum of ``nbytes`` over all jobs, kept as a total: the cost doesn't grow."""
        return self._transactions.read(total_bytes)

    def stats(self) -> StoreStats:
        """Hits and misses of this object (and of those bound from it), and totals.

        The totals are a scan over all jobs and targets: for a dashboard, not for a hot path.
        """
        return self._transactions.read(lambda tx: stats.stats(tx, self._counts), snapshot=True)

    def list_jobs(
        self,
        *,
        caller: str | None = None,
        status: JobStatus | str | None = None,
        after: str | None = None,
        limit: int | None = 100,
    ) -> list[BatchJob]:
        """Jobs, newest first; the next page begins after the last job's id.

        None leaves a filter out; ``limit=None`` lists them all. A page of live jobs costs what
        the live jobs are; one by a rare terminal status may look at all jobs, or at all of the
        caller's. Raises ``JobNotFound`` when the job ``after`` is no more.
        """
        if caller is not None:
            caller = check_name("caller", caller)
        if after is not None:
            after = check_id("after", after)
        wanted = None if status is None else check_job_status("status", status)
        most = check_limit("limit", limit)
        return self._transactions.read(lambda tx: jobs.list_jobs(tx, caller, wanted, after, most))

    def delete_job(self, job_id: str) -> bool:
        """Delete a job with all its targets, live or not; False when there is none."""
        job_id = check_id("job_id", job_id)
        return self._transactions.write(lambda tx: removing.delete_job(tx, job_id))

    def now(self) -> float:
        """The store's clock, in unix seconds: the database's, or this host's for a local file."""
        return self._transactions.read(clock.now)
