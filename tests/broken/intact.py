"""The store that is not broken."""

from __future__ import annotations

from batchmill.testing import MemoryStore
from tests.broken.registry import in_memory

STORES = [in_memory("none", MemoryStore)]
