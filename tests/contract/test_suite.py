"""The contract suite itself: nothing of it may get lost, nor need more than it says."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

import batchmill.testing
from batchmill.testing import JobStoreContract, RepositoryContract, StoreContract


def test_no_test_hides_another() -> None:
    """Every test of the contract has a name of its own, so that no subclass loses one."""
    names = Counter(
        name for part in StoreContract.__mro__ for name in vars(part) if name.startswith("test_")
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 200


def test_the_whole_is_both_halves() -> None:
    """StoreContract is both halves of the contract, and pytest collects none by itself."""
    assert issubclass(StoreContract, RepositoryContract)
    assert issubclass(StoreContract, JobStoreContract)
    assert not StoreContract.__name__.startswith("Test")


def test_every_test_states_its_behaviour() -> None:
    """Every test of the contract has a docstring."""
    silent = [
        f"{part.__name__}.{name}"
        for part in StoreContract.__mro__
        for name, test in vars(part).items()
        if name.startswith("test_") and not test.__doc__
    ]
    assert silent == []


def test_it_imports_without_pytest() -> None:
    """Importing batchmill.testing and using a MemoryStore needs neither pytest nor SQLAlchemy."""
    program = (
        "import sys; from batchmill.testing import MemoryStore; MemoryStore().nbytes();"
        "print(sorted({'pytest', 'sqlalchemy', 'alembic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_no_contract() -> None:
    """A name that isn't there is an AttributeError, as of any module."""
    with pytest.raises(AttributeError, match="NoSuchContract"):
        _ = batchmill.testing.NoSuchContract  # type: ignore[attr-defined]
