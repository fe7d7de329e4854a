"""Where each thread of a child is in its transaction, in memory that outlives the child.

A child notes each step with one store of eight bytes, which is never torn; the parent reads the
same memory while the child lives, and after it was killed.
"""

from __future__ import annotations

import mmap
import threading
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from tests.support.injection import (
    AFTER_BEGIN,
    AFTER_COMMIT,
    AFTER_STATEMENT,
    BEFORE_COMMIT,
    BEFORE_ROLLBACK,
    BEFORE_STATEMENT,
    Points,
)

SLOTS = 16
"""The most threads of one child that come to the database."""

CALLS = ("none", "exchange", "submit_job", "sweep", "hold", "release_lost", "other")
STEPS = (
    "outside",
    "begun",
    "before a read",
    "after a read",
    "before batch_target",
    "after batch_target",
    "before batch_turn",
    "after batch_turn",
    "before batch_job",
    "after batch_job",
    "before batch_total",
    "after batch_total",
    "at the commit",
)
"""Places in a write transaction; the table is the one that is written."""
TABLES = ("batch_target", "batch_turn", "batch_job", "batch_total")


class Place(NamedTuple):
    """Where one thread is; ``writing``: its transaction may write, and isn't over."""

    call: str
    step: str
    writing: bool

    @property
    def in_exchange(self) -> bool:
        """Between the begin of an exchange's transaction and the end of its commit."""
        return self.writing and self.call == "exchange"


def code_of(call: str, step: str) -> int:
    """What a board holds for a thread that is there in a transaction that writes."""
    return CALLS.index(call) << 16 | STEPS.index(step) << 8 | 1


class Board:
    """The slots of one child; made by the parent, opened by the child."""

    def __init__(self, path: Path, *, make: bool = False) -> None:
        if make:
            path.write_bytes(bytes(8 * SLOTS))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8 * SLOTS)
        self._slots = memoryview(self._memory).cast("Q")

    def close(self) -> None:
        """Give the memory back."""
        self._slots.release()
        self._memory.close()

    def note(self, slot: int, call: int, step: int, *, writing: bool) -> None:
        """One thread is here now."""
        self._slots[slot] = call << 16 | step << 8 | writing

    def shows(self, code: int) -> bool:
        """Whether a thread is at the place of this code, found out as fast as can be."""
        return code in self._slots.tolist()

    def places(self) -> list[Place]:
        """Where each thread is."""
        return [
            Place(CALLS[raw >> 16], STEPS[raw >> 8 & 0xFF], bool(raw & 1))
            for raw in self._slots.tolist()
        ]


class Announcer:
    """Notes on a board each step of every transaction of an engine."""

    def __init__(self, engine: Engine, board: Board) -> None:
        self._board = board
        self._local = threading.local()
        self._lock = threading.Lock()
        self._used = 0
        Points(engine).listener = self._at

    def called(self, name: str) -> None:
        """This thread calls a method of the store."""
        self._local.call = CALLS.index(name if name in CALLS else "other")

    def _slot(self) -> int:
        slot = getattr(self._local, "slot", None)
        if slot is None:
            with self._lock:
                slot = self._local.slot = self._used
                self._used += 1
        return slot

    def _at(self, point: str, statement: str) -> None:
        local = self._local
        if not getattr(local, "writing", False) and _begins_to_write(point, statement):
            local.writing = True
            self._note("begun")
        elif point in (AFTER_COMMIT, BEFORE_ROLLBACK):
            local.writing = False
            self._note("outside")
        elif not getattr(local, "writing", False):
            return
        elif point == BEFORE_COMMIT:
            self._note("at the commit")
        elif point in (BEFORE_STATEMENT, AFTER_STATEMENT):
            self._note(f"{point.split(maxsplit=1)[0]} {_what(statement)}")

    def _note(self, step: str) -> None:
        local = self._local
        call = getattr(local, "call", 0)
        self._board.note(self._slot(), call, STEPS.index(step), writing=local.writing)


def _begins_to_write(point: str, statement: str) -> bool:
    """Its own BEGIN has been answered, where there is one, or it sends its first write."""
    if point == AFTER_BEGIN:
        return True
    return point == BEFORE_STATEMENT and statement.startswith(("INSERT", "UPDATE", "DELETE"))


def _what(statement: str) -> str:
    """The table that a statement writes, or a read."""
    words: Any = statement.split(None, 3)
    written = [table for table in TABLES if table in words[1:3]]
    return written[0] if written and words[0] != "SELECT" else "a read"
