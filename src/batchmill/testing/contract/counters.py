"""update_target: what is counted, in what unit, and how often (seed-000, rule 3)."""

from __future__ import annotations

import pytest

from batchmill.errors import InvalidTransition, TargetNotFound
from batchmill.records import JobStatus, TargetStatus
from batchmill.testing.contract.base import Contract
from batchmill.testing.contract.steps import (
    T,
    add_job,
    assert_counters_true,
    contents_of,
    job_in,
    job_of,
    race,
    targets_in,
    targets_of,
)
from batchmill.testing.contract.surface import Repository

DONE, FAILED = TargetStatus.DONE, TargetStatus.FAILED
TEXTS = [
    "",
    "plain",
    "é",
    "日本語",
    "😀",
    '{"a":"\\u00e9\\n\\u0000"}',
    "tab\tquote\"'",
    "é😀" * 1000,
]


class Counters(Contract):
    """targets_done, nbytes and lease after writes."""

    @pytest.mark.parametrize("status", [DONE, FAILED])
    def test_a_finished_target_counts_once(self, store: Repository, status: TargetStatus) -> None:
        """A target that becomes done or failed counts once, however often it is written."""
        add_job(store, "a", 2)
        for _ in range(3):
            store.update_target("a", 1, now=T, status=status, result="xy")
        assert job_in(store, "a").targets_done == 1
        assert job_in(store, "a").nbytes == store.nbytes() == 2

    def test_done_and_failed_may_change_places(self, store: Repository) -> None:
        """Going from done to failed and back counts nothing again."""
        add_job(store, "a")
        for status in (DONE, FAILED, DONE):
            store.update_target("a", 0, now=T, status=status)
            assert targets_in(store, "a")[0].status is status
            assert job_in(store, "a").targets_done == 1

    def test_a_started_target_does_not_count(self, store: Repository) -> None:
        """Pending and running targets don't count; what follows them does."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=TargetStatus.RUNNING)
        store.update_target("a", 0, now=T, status=TargetStatus.PENDING)
        assert job_in(store, "a").targets_done == 0
        store.update_target("a", 0, now=T, status=TargetStatus.RUNNING)
        store.update_target("a", 0, now=T, status=DONE)
        assert job_in(store, "a").targets_done == 1

    def test_a_write_by_hand_leaves_the_job_status(self, store: Repository) -> None:
        """A job made by hand keeps its status until set_job_status, also after its last target."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=DONE)
        assert job_in(store, "a").status is JobStatus.QUEUED

    @pytest.mark.parametrize("text", TEXTS)
    def test_bytes_are_counted_not_characters(self, store: Repository, text: str) -> None:
        """nbytes is the UTF-8 length of the result, and the result reads back (cases.md)."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=DONE, result=text)
        assert targets_in(store, "a")[0].result == text
        assert job_in(store, "a").nbytes == store.nbytes() == len(text.encode("utf-8"))

    def test_only_results_are_bytes(self, store: Repository) -> None:
        """Errors and hints count nothing; a failed target's result does."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=FAILED, result="é", error="long", hint="longer")
        assert store.nbytes() == 2

    def test_a_rewrite_counts_the_difference(self, store: Repository) -> None:
        """A longer result adds the difference, a shorter one and None subtract it."""
        add_job(store, "a")
        sizes = []
        for result in ("éé", "x" * 10, "y", None, "zz"):
            store.update_target("a", 0, now=T, status=DONE, result=result)
            sizes.append((job_in(store, "a").nbytes, store.nbytes()))
        assert sizes == [(4, 4), (10, 10), (1, 1), (0, 0), (2, 2)]

    def test_a_write_replaces_every_text(self, store: Repository) -> None:
        """A write sets result, error and hint as given, None included."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=FAILED, result="r", error="e", hint="h")
        store.update_target("a", 0, now=T, status=DONE)
        target = targets_in(store, "a")[0]
        assert (target.result, target.error, target.hint) == (None, None, None)

    def test_counters_begin_where_the_job_began(self, store: Repository) -> None:
        """What a job was created with stays counted; changes are differences to it."""
        store.create_job(job_of("a", total=1, nbytes=100))
        store.put_targets("a", targets_of("a", 1))
        store.update_target("a", 0, now=T, status=DONE, result="abc")
        assert (job_in(store, "a").nbytes, store.nbytes()) == (103, 103)

    @pytest.mark.parametrize("now", [T + 3, T + 3.99, T - 3])
    def test_a_write_sets_the_lease(self, store: Repository, now: float) -> None:
        """Every write sets its job's lease, and only that one's, to its now, floored."""
        add_job(store, "a")
        add_job(store, "b")
        for status in (TargetStatus.RUNNING, DONE, DONE):
            store.touch_job("a", now=T)
            store.update_target("a", 0, now=now, status=status)
            assert job_in(store, "a").lease == int(now)
        assert job_in(store, "b").lease == T

    def test_the_sum_is_over_all_jobs(self, store: Repository) -> None:
        """The store's nbytes is the sum over its jobs (seed-000, rule 7)."""
        for number, text in enumerate(TEXTS):
            add_job(store, f"j{number}", 2)
            store.update_target(f"j{number}", 1, now=T, status=DONE, result=text)
        assert store.nbytes() == sum(len(text.encode()) for text in TEXTS)
        assert_counters_true(store)


class Refusals(Contract):
    """Writes that are refused change nothing."""

    @pytest.mark.parametrize(("job_id", "idx"), [("nobody", 0), ("a", 1)])
    def test_an_unknown_target_is_not_found(self, store: Repository, job_id: str, idx: int) -> None:
        """Writing a target that isn't there is TargetNotFound, and the lease stays."""
        add_job(store, "a")
        before = contents_of(store)
        with pytest.raises(TargetNotFound):
            store.update_target(job_id, idx, now=T + 9, status=DONE, result="x")
        assert contents_of(store) == before
        assert store.nbytes() == 0

    @pytest.mark.parametrize("old", [DONE, FAILED])
    @pytest.mark.parametrize("new", [TargetStatus.PENDING, TargetStatus.RUNNING])
    def test_finished_stays_finished(
        self, store: Repository, old: TargetStatus, new: TargetStatus
    ) -> None:
        """A finished target that would go back is InvalidTransition and stays as it was."""
        add_job(store, "a")
        store.update_target("a", 0, now=T, status=old, result="kept")
        before = contents_of(store)
        with pytest.raises(InvalidTransition):
            store.update_target("a", 0, now=T + 9, status=new)
        assert contents_of(store) == before
        assert store.nbytes() == 4


class CounterRaces(Contract):
    """Counters under threads (cases.md 10)."""

    def test_one_target_from_many_threads(self, store: Repository) -> None:
        """One target written done and failed by many threads at once counts once."""
        add_job(store, "a", 2)

        def write(number: int) -> None:
            status = DONE if number % 2 else FAILED
            for size in range(1, 5):
                store.update_target("a", 0, now=T, status=status, result="é" * (size + number))

        race(self.capabilities.threads, write)
        assert job_in(store, "a").targets_done == 1
        assert_counters_true(store)

    def test_many_targets_from_many_threads(self, store: Repository) -> None:
        """Targets written by many threads at once all count, each once."""
        threads = self.capabilities.threads
        add_job(store, "a", threads * 5)

        def write(number: int) -> None:
            for idx in range(number, threads * 5, threads):
                store.update_target("a", idx, now=T, status=DONE, result="x" * idx)

        race(threads, write)
        assert job_in(store, "a").targets_done == threads * 5
        assert_counters_true(store)
