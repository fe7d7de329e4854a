"""What every contract class has: the store to bring, and what is asked of it at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from batchmill.testing.contract.steps import Steps, assert_counters_true
from batchmill.testing.contract.surface import Capabilities, Store


class Contract:
    """The base: subclass a contract and give it a fixture ``store`` with an empty store.

    ``capabilities`` says where the store rightly differs. A fixture that closes the store, and
    asserts that nothing stays open, belongs to the subclass.
    """

    capabilities: ClassVar[Capabilities] = Capabilities()

    @pytest.fixture
    def store(self) -> Store:
        """An empty store, of the subclass's own kind."""
        raise NotImplementedError("give this class a fixture `store` that returns an empty store")


class SubmittedContract(Contract):
    """The base of what is tested with submitted jobs, which all begin at zero."""

    @pytest.fixture
    def steps(self, store: Store) -> Iterator[Steps]:
        """The steps of runners on the store; afterwards its counters must equal its rows."""
        yield Steps(store)
        assert_counters_true(store)
