"""The public contract over the broken store of this run, one class for each part of it."""

from __future__ import annotations

from typing import Any

import pytest

from batchmill.testing import JobStoreContract, RepositoryContract
from batchmill.testing.contract import Capabilities


class OnTheBrokenStore:
    capabilities = Capabilities(within=False, threads=4)

    @pytest.fixture
    def store(self, broken_store: Any) -> Any:
        """The plugin of this run makes it."""
        return broken_store


PARTS = (*RepositoryContract.__bases__, *JobStoreContract.__bases__)
globals().update(
    {
        f"Test{part.__name__}": type(f"Test{part.__name__}", (OnTheBrokenStore, part), {})
        for part in PARTS
    }
)
