"""A reader in the middle of a job that goes away: whole pages, or no such job."""

from __future__ import annotations

import pytest

from batchmill.errors import JobNotFound
from batchmill.runner import JobReader, Runner, reading
from tests.store.support import HOUR, done, exchange, submit
from tests.support import injection
from tests.support.injection import Points, listening
from tests.support.interleave import Side

TARGETS = 6


@pytest.fixture(autouse=True)
def small_pages(monkeypatch):
    """Two targets a page."""
    monkeypatch.setattr(reading, "PAGE_ROWS", 2)


@pytest.fixture
def finished(store):
    """Job a, done, with a result of ten bytes in each of its targets."""
    submit(store, "a", TARGETS)
    claims = exchange(store).claims
    while claims:
        claims = exchange(store, [done(claims[0], f'"result-{claims[0].idx}"')]).claims
    return store


def _evicted(store):
    assert store.evict_oldest(max_bytes=0) == 1


def _swept(store):
    assert store.sweep(now=100 + 3600, ttl=HOUR) == 1


def _deleted(store):
    assert store.delete_job("a")


@pytest.mark.parametrize("remove", [_evicted, _swept, _deleted])
def test_a_reader_between_two_pages(database, finished, remove):
    """Whole pages up to there, then JobNotFound."""
    reader: JobReader = Runner(finished, print)
    results = reader.results("a")
    assert [next(results).result.content for _ in range(2)] == ["result-0", "result-1"]
    remove(database.store())
    with pytest.raises(JobNotFound):
        next(results)


@pytest.mark.parametrize("remove", [_evicted, _swept, _deleted])
def test_a_reader_between_any_two_statements(database, finished, remove):
    """Wherever in a read the job goes, the answer is the whole page or None, never a part."""
    reads = {
        "page": lambda s: s.get_targets("a", limit=4, max_bytes=25),
        "rest": lambda s: s.get_targets("a", start=3),
        "job": lambda s: s.get_job("a"),
        "nothing": lambda s: s.get_targets("a", start=TARGETS),
    }
    snapshot = database.snapshot()
    for read in reads.values():
        database.restore(snapshot)
        whole, statements = read(finished), _statements(finished, read)
        assert whole is not None
        for point in (injection.BEFORE_STATEMENT, injection.AFTER_STATEMENT):
            for nth in range(statements):
                database.restore(snapshot)
                answer = _read_while(database, read, point, nth, remove)
                assert answer in (whole, None), (point, nth)


def _statements(store, read) -> int:
    points = Points(store.engine)
    with listening(points, injection.Counts()) as counts:
        read(store)
    return counts.of(injection.BEFORE_STATEMENT)


def _read_while(database, read, point, nth, remove):
    """The answer of a read in the middle of which the job goes."""
    store = database.store()
    passed = []

    def at(reached: str, _statement: str) -> None:
        if reached == point:
            passed.append(reached)
            if len(passed) == nth + 1:
                remove(database.store())

    with listening(Points(store.engine), at):
        return read(store)


def test_a_reader_does_not_wait_for_a_writer(database, finished):
    """What an eviction has not committed yet is still there, whole, and nobody waits for it."""
    evicting = database.store()
    side = Side(evicting.engine).start(lambda: evicting.evict_oldest(max_bytes=0))
    side.until_stopped()
    assert len(finished.get_targets("a")) == TARGETS
    assert finished.get_job("a").targets_done == TARGETS
    assert side.finish() == 1
    assert finished.get_targets("a") is None


def test_totals_are_of_one_moment(database, finished):
    """stats() never counts the targets of a job that it doesn't count, or the other way round."""
    snapshot = database.snapshot()
    for nth in range(_statements(finished, lambda s: s.stats())):
        database.restore(snapshot)
        stats = _read_while(
            database, lambda s: s.stats(), injection.BEFORE_STATEMENT, nth, _deleted
        )
        assert (stats.jobs, stats.targets, stats.nbytes) in [
            ({"done": 1}, {"done": TARGETS}, TARGETS * 10),
            ({}, {}, 0),
        ]
