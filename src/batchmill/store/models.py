"""The tables, as ORM models: what an application may select from and join to its own.

``metadata`` is batchmill's own; its tables, indexes and constraints all carry names that begin
with ``batch_``. Writing through these models bypasses every promise of the repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Sequence,
    String,
    Text,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from batchmill.records import JobStatus, TargetStatus

NAMING_CONVENTION: Final = {
    "pk": "%(table_name)s_pk",
    "fk": "%(table_name)s_%(column_0_name)s_fk",
    "uq": "%(table_name)s_%(column_0_N_name)s_uq",
    "ix": "%(table_name)s_%(column_0_N_name)s_ix",
    "ck": "%(table_name)s_%(constraint_name)s_ck",
}

metadata: MetaData = MetaData(naming_convention=NAMING_CONVENTION)

_MARIADB_COLLATION: Final = "utf8mb4_nopad_bin"
_INNODB: Final = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("row_format", "DYNAMIC"))
}
"""A transactional engine, and rows whose indexes may be as long as ours, whatever the defaults."""
_LIVE: Final = text("status IN ('queued', 'running')")


def _one_of(words: Iterable[str]) -> str:
    """A CHECK of a status, not by IN: SQLite builds a table for its list at each write.

    Measured, that is a third of what an insert of 32 targets costs.
    """
    return " OR ".join(f"status = '{word}'" for word in words)


def _name(length: int) -> TypeEngine[str]:
    """A bounded text that compares by bytes on every database."""
    return (
        String(length)
        .with_variant(String(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, collation=_MARIADB_COLLATION), "mysql", "mariadb")
    )


def _body() -> TypeEngine[str]:
    """A text of any length; MariaDB's TEXT would end at 64 KiB (cases.md 27)."""
    return Text().with_variant(mysql.LONGTEXT(collation=_MARIADB_COLLATION), "mysql", "mariadb")


TURN_NUMBER: Final = Sequence("batch_turn_number", metadata=metadata)
"""Numbers the turns where the database has sequences; a counter row would serialise runners."""


class Base(DeclarativeBase):
    """The base of batchmill's models, apart from the application's own."""

    metadata = metadata


class BatchJobRow(Base):
    """A job: the seed's eleven columns (spec/seed-000, Schema)."""

    __tablename__ = "batch_job"

    id: Mapped[str] = mapped_column(_name(64), primary_key=True)
    caller: Mapped[str] = mapped_column(_name(255))
    caller_class: Mapped[str] = mapped_column(_name(255))
    idem_key: Mapped[str] = mapped_column(_name(255))
    status: Mapped[str] = mapped_column(_name(16))
    error: Mapped[str] = mapped_column(_body())
    targets_total: Mapped[int] = mapped_column(BigInteger)
    targets_done: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[int] = mapped_column(BigInteger)
    lease: Mapped[int] = mapped_column(BigInteger)
    nbytes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))

    __table_args__: Any = (
        CheckConstraint(_one_of(JobStatus), name="status"),
        # Both in the order of their queries to the end: with a shorter one, the planner would
        # take the other's and walk all the jobs that a caller has kept.
        Index(None, "caller", "idem_key", "created_at", "id"),
        Index(None, "caller", "created_at", "id"),
        Index(None, "lease", "id"),
        # Live jobs only, where a database can: among a million kept ones the planner would
        # else take a status for common, and the index would change with every job that ends.
        Index(None, "status", "caller", sqlite_where=_LIVE, postgresql_where=_LIVE),
        Index(None, "created_at", "id"),
        _INNODB,
    )


class BatchTargetRow(Base):
    """A target; ``result`` stands last, so that reading a status never walks a large value."""

    __tablename__ = "batch_target"

    job_id: Mapped[str] = mapped_column(
        _name(64), ForeignKey("batch_job.id", ondelete="CASCADE"), primary_key=True
    )
    idx: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    url: Mapped[str] = mapped_column(_body())
    options: Mapped[str] = mapped_column(_body())
    status: Mapped[str] = mapped_column(_name(16))
    error: Mapped[str | None] = mapped_column(_body())
    hint: Mapped[str | None] = mapped_column(_body())
    attempt: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """How often it has been started."""
    lost: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """How often the runner that held it was lost."""
    nbytes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """The UTF-8 bytes of its result, so that a page can be cut without reading results."""
    result: Mapped[str | None] = mapped_column(_body())

    __table_args__: Any = (
        CheckConstraint(_one_of(TargetStatus), name="status"),
        _INNODB,
    )


class BatchTurnRow(Base):
    """The place of one live, submitted job in the rotation; times are unix milliseconds."""

    __tablename__ = "batch_turn"

    job_id: Mapped[str] = mapped_column(
        _name(64), ForeignKey("batch_job.id", ondelete="CASCADE"), primary_key=True
    )
    turn: Mapped[int] = mapped_column(BigInteger)
    next_idx: Mapped[int] = mapped_column(Integer)
    targets_failed: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    """How many of its targets are stored failed: the terminal status without counting rows."""
    ready_at: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    busy_since: Mapped[int | None] = mapped_column(BigInteger)
    queue: Mapped[str] = mapped_column(_name(255))
    home: Mapped[str | None] = mapped_column(_name(64))
    holder: Mapped[str | None] = mapped_column(_name(64))
    token: Mapped[str | None] = mapped_column(_name(64))
    held_until: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__: Any = (
        # Changed with each target: one index for the rotation of a queue and for all that a
        # runner has in flight, and none over the tokens.
        Index(None, "holder", "queue", "turn"),
        Index(None, "home"),
        _INNODB,
    )


class BatchRunnerRow(Base):
    """A runner that local jobs belong to: when it was last seen; unix milliseconds."""

    __tablename__ = "batch_runner"
    __table_args__: Any = _INNODB

    id: Mapped[str] = mapped_column(_name(64), primary_key=True)
    seen_at: Mapped[int] = mapped_column(BigInteger)
    hold_for: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """What this runner itself holds for, in milliseconds; 0 until it first said so."""


class BatchTotalRow(Base):
    """The byte total, kept so that the budget check costs the same with any number of jobs.

    The total is the sum over the shards: as many as keep writers off each other's rows. ``turns``
    numbers the turns where the database has no sequence. Two rows hold no bytes: where rows are
    locked, a submit locks -1 while it counts live jobs, and an eviction locks -2 while it deletes.
    """

    __tablename__ = "batch_total"
    __table_args__: Any = _INNODB

    shard: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    nbytes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    turns: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
