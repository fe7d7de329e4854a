"""The contract over MemoryStore, which is the specification."""

from __future__ import annotations

import pytest

from batchmill.testing import MemoryStore, StoreContract
from batchmill.testing.contract import Capabilities, Store


class TestMemory(StoreContract):
    capabilities = Capabilities(within=False)

    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def test_the_clock_can_be_given() -> None:
    """now() answers what the clock says, so that a test can move it."""
    assert MemoryStore(clock=lambda: 12.5).now() == 12.5


def test_there_is_no_push() -> None:
    """subscribe answers None: a runner on a MemoryStore polls."""
    assert MemoryStore().subscribe(lambda: None) is None
