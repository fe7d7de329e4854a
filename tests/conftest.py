"""What every test gets: a database file of its own, and the check that no thread is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixtures import mariadb_server, postgresql_server
from tests.support.tables import summarise

__all__ = ["mariadb_server", "postgresql_server"]

# Here, since the command's tests import it too, and come first.
pytest.register_assert_rewrite("tests.migrations.places")

LEAVE_WITHIN = 5.0
"""Seconds that a thread may take to end after its test."""


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that doesn't exist yet."""
    return f"sqlite:///{tmp_path / 'batchmill.db'}"


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + LEAVE_WITHIN
    for thread in set(threading.enumerate()) - before:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()]
    assert not left, f"threads left alive: {left}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the tables of every folder's tests.

    From here: of a run on several cores the process that prints knows no folder's own conftest.
    """
    summarise(terminalreporter)
