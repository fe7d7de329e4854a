"""Jobs and targets: made, read and touched (design.md section 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchmill.errors import (
    InvalidInput,
    InvalidTransition,
    JobExists,
    JobNotFound,
    TargetExists,
)
from batchmill.records import BatchJob, BatchTarget, CallerClass, JobStatus, TargetStatus
from batchmill.testing.contract.base import Contract
from batchmill.testing.contract.steps import (
    T,
    add_job,
    contents_of,
    job_in,
    job_of,
    targets_in,
    targets_of,
)
from batchmill.testing.contract.surface import Repository

FULL = BatchJob(
    id="full",
    caller="Ada Lovelace",
    caller_class=CallerClass.FLEET,
    idem_key="k" * 64,
    status=JobStatus.PARTIAL,
    error="two of three 😀",
    targets_total=3,
    targets_done=2,
    created_at=T - 5,
    lease=T + 7,
    nbytes=11,
)


class JobRows(Contract):
    """One job's row."""

    def test_a_job_is_stored_as_given(self, store: Repository) -> None:
        """Every column of a created job reads back as it was given (seed-000, rule 1)."""
        store.create_job(FULL)
        assert store.get_job("full") == FULL

    def test_an_unknown_job_is_none(self, store: Repository) -> None:
        """Reading an unknown job answers None, with or without a touch."""
        assert store.get_job("nobody") is None
        assert store.get_job("nobody", touch_at=T) is None

    def test_an_id_is_taken_once(self, store: Repository) -> None:
        """A second job of the same id is JobExists and leaves the first as it was."""
        store.create_job(FULL)
        with pytest.raises(JobExists):
            store.create_job(replace(FULL, caller="other", nbytes=5, lease=T + 99))
        assert store.get_job("full") == FULL
        assert store.nbytes() == FULL.nbytes

    def test_reading_is_pure(self, store: Repository) -> None:
        """Reading a job or its targets leaves the lease alone (design.md section 3)."""
        add_job(store, "a")
        store.get_job("a")
        store.get_targets("a")
        store.list_jobs()
        store.count_live_jobs("ada")
        assert job_in(store, "a").lease == T

    @pytest.mark.parametrize("now", [T + 50, T + 50.9, T - 50])
    def test_a_touching_read_sets_the_lease(self, store: Repository, now: float) -> None:
        """A read with touch_at answers with the new lease, which is exactly that time, floored."""
        add_job(store, "a")
        touched = store.get_job("a", touch_at=now)
        assert touched is not None
        assert touched.lease == int(now)
        assert job_in(store, "a") == touched

    @pytest.mark.parametrize("now", [T + 50, T + 50.9, T - 50])
    def test_touch_sets_the_lease_exactly(self, store: Repository, now: float) -> None:
        """A touch sets the lease to its now, floored; an older now lowers it."""
        add_job(store, "a")
        store.touch_job("a", now=now)
        assert job_in(store, "a").lease == int(now)

    def test_touching_an_unknown_job_fails(self, store: Repository) -> None:
        """A touch of an unknown job is JobNotFound."""
        with pytest.raises(JobNotFound):
            store.touch_job("nobody", now=T)

    def test_times_and_bytes_are_64_bits_wide(self, store: Repository) -> None:
        """A lease after 2038 and a byte count over 2 GiB are stored whole (cases.md 30)."""
        store.create_job(job_of("a", nbytes=2_147_483_640, lease=2_200_000_000))
        store.put_targets("a", targets_of("a", 1))
        store.update_target("a", 0, now=2_200_000_001, status=TargetStatus.DONE, result="x" * 100)
        store.create_job(job_of("b", nbytes=5 * 2**30))
        assert job_in(store, "a").nbytes == 2_147_483_740
        assert job_in(store, "a").lease == 2_200_000_001
        assert store.nbytes() == 2_147_483_740 + 5 * 2**30
        assert isinstance(store.nbytes(), int)

    @pytest.mark.parametrize("text", ["", "Ünïcode 😀 \\ \" ' % :x ?", "line\nline\ttab", " k "])
    def test_any_text_reads_back(self, store: Repository, text: str) -> None:
        """Names and errors of any characters read back exactly as they were given."""
        job = replace(FULL, caller=text, caller_class=text, idem_key=text, error=text)
        store.create_job(job)
        assert store.get_job("full") == job

    def test_the_longest_names_fit(self, store: Repository) -> None:
        """An id of 64 and names of 255 characters are stored, however many bytes they take."""
        job = replace(
            FULL, id="é" * 64, caller="😀" * 255, caller_class="ß" * 255, idem_key="k" * 255
        )
        store.create_job(job)
        assert store.get_job(job.id) == job


class JobStatuses(Contract):
    """set_job_status, and the counts of live jobs."""

    @pytest.mark.parametrize("status", list(JobStatus))
    def test_status_error_and_lease_are_set(self, store: Repository, status: JobStatus) -> None:
        """A live job gets any status, with its error, and the lease is now (seed-000, rule 1)."""
        add_job(store, "a")
        store.set_job_status("a", status, now=T + 9.5, error="why")
        job = job_in(store, "a")
        assert (job.status, job.error, job.lease) == (status, "why", T + 9)

    def test_the_error_goes_unless_given_again(self, store: Repository) -> None:
        """Setting a status without an error empties the error."""
        add_job(store, "a")
        store.set_job_status("a", JobStatus.RUNNING, now=T, error="why")
        store.set_job_status("a", JobStatus.RUNNING, now=T)
        assert job_in(store, "a").error == ""

    def test_an_unknown_job_has_no_status(self, store: Repository) -> None:
        """Setting the status of an unknown job is JobNotFound."""
        with pytest.raises(JobNotFound):
            store.set_job_status("nobody", JobStatus.DONE, now=T)

    @pytest.mark.parametrize("old", [status for status in JobStatus if status.terminal])
    @pytest.mark.parametrize("new", list(JobStatus))
    def test_a_terminal_status_is_kept(
        self, store: Repository, old: JobStatus, new: JobStatus
    ) -> None:
        """A terminal status is never left: another is InvalidTransition and changes nothing."""
        add_job(store, "a", status=old)
        before = contents_of(store)
        if new is old:
            store.set_job_status("a", new, now=T + 1)
            assert job_in(store, "a").lease == T + 1
            return
        with pytest.raises(InvalidTransition):
            store.set_job_status("a", new, now=T + 1, error="late")
        assert contents_of(store) == before

    def test_live_are_queued_and_running(self, store: Repository) -> None:
        """Only queued and running jobs are counted, by caller and in all."""
        for status in JobStatus:
            store.create_job(job_of(f"a-{status}", status=status))
            store.create_job(job_of(f"b-{status}", caller="bob", status=status))
        store.create_job(job_of("b2", caller="bob"))
        counts = [store.count_live_jobs(caller) for caller in ("ada", "bob", "eve", None)]
        assert counts == [2, 3, 0, 5]


class TargetRows(Contract):
    """put_targets and get_targets."""

    def test_targets_come_in_order(self, store: Repository) -> None:
        """Targets read back whole and by index, in whatever order they came (seed-000, rule 3)."""
        rows = targets_of("a", 12)
        store.create_job(job_of("a", total=12))
        store.put_targets("a", [rows[2], rows[10], rows[0]])
        store.put_targets("a", [row for row in reversed(rows) if row.idx not in {0, 2, 10}])
        assert store.get_targets("a") == rows

    def test_targets_are_stored_as_given(self, store: Repository) -> None:
        """Every column of a target reads back; an empty job_id stands for the job's own."""
        row = BatchTarget("", 0, "u😀", '{"a":"\\u0000"}', TargetStatus.FAILED, "r", "e", "h")
        store.create_job(job_of("a", total=1))
        store.put_targets("a", [row])
        assert store.get_targets("a") == [replace(row, job_id="a")]

    def test_unknown_and_empty_differ(self, store: Repository) -> None:
        """An unknown job has None for targets, a job without targets an empty list."""
        store.create_job(job_of("a"))
        assert store.get_targets("a") == []
        assert store.get_targets("nobody") is None

    def test_targets_need_their_job(self, store: Repository) -> None:
        """Targets of an unknown job are JobNotFound, and nothing is stored."""
        with pytest.raises(JobNotFound):
            store.put_targets("nobody", targets_of("nobody", 1))
        store.create_job(job_of("nobody"))
        assert store.get_targets("nobody") == []

    def test_all_targets_or_none(self, store: Repository) -> None:
        """An index that is taken is TargetExists, and none of that call is stored."""
        add_job(store, "a", 1)
        before = contents_of(store)
        bad = [BatchTarget("a", 5, "u", "{}", TargetStatus.DONE, "xyz"), *targets_of("a", 1)]
        with pytest.raises(TargetExists):
            store.put_targets("a", bad)
        assert contents_of(store) == before
        assert store.nbytes() == 0

    def test_an_index_given_twice_is_refused(self, store: Repository) -> None:
        """The same index twice in one call is TargetExists, and nothing is stored."""
        store.create_job(job_of("a"))
        with pytest.raises(TargetExists):
            store.put_targets("a", targets_of("a", 2) + targets_of("a", 1))
        assert store.get_targets("a") == []

    def test_a_target_of_another_job_is_refused(self, store: Repository) -> None:
        """A target that names another job is InvalidInput."""
        add_job(store, "a", 0)
        add_job(store, "b", 0)
        with pytest.raises(InvalidInput):
            store.put_targets("a", targets_of("b", 1))
        assert (store.get_targets("a"), store.get_targets("b")) == ([], [])

    def test_what_targets_hold_is_counted(self, store: Repository) -> None:
        """put_targets adds finished targets and result bytes, and leaves the lease alone."""
        store.create_job(job_of("a", total=4, nbytes=7))
        store.put_targets(
            "a",
            [
                BatchTarget("a", 0, "u", "{}", TargetStatus.DONE, "é😀"),
                BatchTarget("a", 1, "u", "{}", TargetStatus.FAILED, error="e"),
                BatchTarget("a", 2, "u", "{}", TargetStatus.RUNNING),
                BatchTarget("a", 3, "u", "{}"),
            ],
        )
        job = job_in(store, "a")
        assert (job.targets_done, job.nbytes, job.lease, job.targets_total) == (2, 13, T, 4)
        assert store.nbytes() == 13

    def test_a_result_that_was_put_may_be_rewritten(self, store: Repository) -> None:
        """A result given to put_targets has its own bytes, in pages and when it is rewritten."""
        store.create_job(job_of("a", total=2))
        rows = [BatchTarget("a", idx, "u", "{}", TargetStatus.DONE, "é😀") for idx in range(2)]
        store.put_targets("a", rows)
        assert store.get_targets("a", max_bytes=11) == rows[:1]
        assert store.get_targets("a", max_bytes=12) == rows
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="x")
        assert (job_in(store, "a").nbytes, store.nbytes()) == (7, 7)

    def test_targets_that_failed_count_without_a_result(self, store: Repository) -> None:
        """put_targets counts finished targets also where none of them has a result."""
        store.create_job(job_of("a", total=2))
        store.put_targets("a", [BatchTarget("a", 0, "u", "{}", TargetStatus.FAILED, error="e")])
        assert (job_in(store, "a").targets_done, store.nbytes()) == (1, 0)

    def test_a_result_counts_whatever_the_status(self, store: Repository) -> None:
        """put_targets counts the bytes that it was given also where no target is finished."""
        store.create_job(job_of("a", total=1))
        store.put_targets("a", [BatchTarget("a", 0, "u", "{}", TargetStatus.PENDING, "x")])
        assert (job_in(store, "a").targets_done, job_in(store, "a").nbytes) == (0, 1)
        assert store.nbytes() == 1

    def test_pages_of_targets(self, store: Repository) -> None:
        """A page begins at index start and has at most limit targets."""
        add_job(store, "a", 5)
        rows = targets_in(store, "a")
        assert store.get_targets("a", start=2) == rows[2:]
        assert store.get_targets("a", start=1, limit=2) == rows[1:3]
        assert store.get_targets("a", start=5) == []
        assert store.get_targets("a", limit=0) == []
        assert store.get_targets("nobody", start=9, limit=1) is None

    def test_the_highest_index_is_in_every_page(self, store: Repository) -> None:
        """The target of the highest index there can be is read, however a page is cut."""
        highest = 2**31 - 1
        row = BatchTarget("a", highest, "u", "{}", TargetStatus.DONE, "xy")
        store.create_job(job_of("a"))
        store.put_targets("a", [row])
        assert store.get_targets("a", start=highest) == [row]
        assert store.get_targets("a", max_bytes=100) == [row]
        assert store.get_targets("a", limit=2, max_bytes=0) == [row]

    def test_results_can_be_left_out(self, store: Repository) -> None:
        """Without results a finished target's result is None, its other columns are there."""
        add_job(store, "a")
        store.update_target(
            "a", 0, now=T, status=TargetStatus.FAILED, result="r", error="e", hint="h"
        )
        rows = targets_in(store, "a")
        assert rows[0].result == "r"
        assert store.get_targets("a", with_results=False) == [replace(rows[0], result=None)]

    def test_a_page_is_cut_by_bytes(self, store: Repository) -> None:
        """A page ends before the result that exceeds max_bytes of UTF-8, and has one at least."""
        add_job(store, "a", 4)
        for idx, result in enumerate(["ab", "é", "xyz"]):
            store.update_target("a", idx, now=T, status=TargetStatus.DONE, result=result)
        sizes = [len(store.get_targets("a", max_bytes=size) or ()) for size in (0, 1, 3, 4, 6, 7)]
        assert sizes == [1, 1, 1, 2, 2, 4]
        assert len(store.get_targets("a", start=2, max_bytes=1) or ()) == 1
