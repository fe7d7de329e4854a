"""What the machine and the properties run on; a failed assert of them shows its values."""

from __future__ import annotations

import pytest

from tests.model.stores import new_server_store, new_store
from tests.support.fixtures import database, make_database, migrated_sqlite

pytest.register_assert_rewrite("tests.model.invariants", "tests.model.machine", "tests.model.pair")

__all__ = ["database", "make_database", "migrated_sqlite", "new_server_store", "new_store"]
