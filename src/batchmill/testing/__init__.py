"""For tests: a store in memory, and the contract that every store has to keep.

``MemoryStore`` needs nothing but Python. The contract classes are pytest tests to subclass; they
are resolved on first use, so that importing this package needs no pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchmill.testing.memory import MemoryStore

if TYPE_CHECKING:
    from batchmill.testing.contract import JobStoreContract, RepositoryContract, StoreContract

__all__ = ["JobStoreContract", "MemoryStore", "RepositoryContract", "StoreContract"]


def __getattr__(name: str) -> Any:
    """Resolve a contract class when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from batchmill.testing import contract

    return getattr(contract, name)
