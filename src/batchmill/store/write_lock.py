"""SQLite's one write lock, and how it is waited for."""

from __future__ import annotations

import random
import time
from sqlite3 import SQLITE_BUSY
from typing import Any, Final

FIRST_LOOK: Final = 0.0005
LAST_LOOK: Final = 0.005
"""Seconds between two looks whether SQLite's write lock is free: the first, and the longest."""
WAITED: Final = 0.001
"""Seconds that a BEGIN takes where somebody else was writing; else it takes some microseconds."""
REMEMBERED: Final = 10.0
"""Seconds after such a BEGIN in which the lock is looked for often; doing so costs 20 µs."""


class WriteLock:
    """SQLite's, as one repository finds it: once somebody else had it, it is looked for often."""

    def __init__(self) -> None:
        self.contended_until = 0.0
        """By the monotonic clock."""

    def take(self, driver: Any) -> None:
        """Begin a transaction that writes, as soon as nobody else does."""
        begun = time.monotonic()
        if begun < self.contended_until:
            _begin_when_free(driver)
        else:
            driver.execute("BEGIN IMMEDIATE")
        if time.monotonic() - begun > WAITED:
            self.contended_until = begun + REMEMBERED


def _begin_when_free(driver: Any) -> None:
    """BEGIN IMMEDIATE, as soon as nobody else writes, for as long as the connection is to wait.

    SQLite itself looks ever more seldom, up to 100 ms apart, and beside a writer that hardly
    pauses finds the lock taken each time: measured, for seconds. Its PRAGMA works when it is
    compiled, so that it can't be one of the statements that sqlite3 keeps compiled.
    """
    ((patience,),) = driver.execute("PRAGMA busy_timeout").fetchall()
    restored = f"PRAGMA busy_timeout = {patience}"
    deadline, pause = time.monotonic() + patience / 1000, FIRST_LOOK
    try:
        while not _begun(driver, f"PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; {restored}", deadline):
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(pause * 1.5, LAST_LOOK)
    except BaseException:
        driver.executescript(restored)
        raise


def _begun(driver: Any, script: str, deadline: float) -> bool:
    """Whether the transaction has begun; raises what SQLite says, once it is too late to wait."""
    try:
        driver.executescript(script)
    except Exception as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF != SQLITE_BUSY or time.monotonic() >= deadline:
            raise
        return False
    return True
