"""What is held of a large job while its results are read."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from batchmill.records import BatchTarget
from batchmill.runner import Runner
from batchmill.runner.reading import PAGE_BYTES
from batchmill.store import BatchRepository
from tests.store.support import job

COUNT, SIZE = 64, 2**20


@pytest.fixture
def large(store: BatchRepository) -> BatchRepository:
    """A store that holds a job of 64 MiB of results."""
    store.create_job(job("large", targets_total=COUNT))
    for idx in range(COUNT):
        text = f'"{"x" * (SIZE - 2)}"'
        store.put_targets("large", [BatchTarget("", idx, "u", "{}", "done", text)])
    return store


@pytest.fixture
def traced() -> Iterator[None]:
    """Python counts what it allocates."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_reading_results_holds_a_few_pages(large: BatchRepository, traced: None) -> None:
    """However many results of 1 MiB a job has, three pages of 4 MiB are the most that is held."""
    runner = Runner(large, print)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    read = sum(len(report.result.content) + 2 for report in runner.results("large"))
    _, peak = tracemalloc.get_traced_memory()
    assert read == COUNT * SIZE
    assert peak - before < 3 * PAGE_BYTES
