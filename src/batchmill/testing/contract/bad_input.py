"""Odd input: the same clear error from every store, and nothing changed (design.md section 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from batchmill.errors import InvalidInput
from batchmill.records import BatchJob, BatchTarget, JobStatus, Limits, Outcome, TargetStatus
from batchmill.testing.contract.base import Contract, SubmittedContract
from batchmill.testing.contract.steps import (
    HOUR,
    WIDE,
    Steps,
    T,
    add_job,
    contents_of,
    job_of,
    targets_of,
)
from batchmill.testing.contract.surface import Repository, Store

BAD_TEXTS = ["a\x00b", "\ud83d", 5, None]
BAD_TIMES = [math.nan, math.inf, -math.inf, None, "1", True, 10**30]

Call = Callable[[Any, Any], object]
"""Calls one method of a store (Any: every argument here is wrong on purpose) with one value."""

TIMED: dict[str, Call] = {
    "find_job_by_idem_key": lambda s, now: s.find_job_by_idem_key("ada", "k", now=now, ttl=HOUR),
    "update_target": lambda s, now: s.update_target("a", 0, now=now, status=TargetStatus.DONE),
    "set_job_status": lambda s, now: s.set_job_status("a", "done", now=now),
    "touch_job": lambda s, now: s.touch_job("a", now=now),
    "sweep": lambda s, now: s.sweep(now=now, ttl=HOUR),
    "mark_in_flight_failed": lambda s, now: s.mark_in_flight_failed("r", now=now),
}
JOB_TIMED: dict[str, Call] = {
    "submit_job": lambda s, now: submit(s, now=now),
    "exchange": lambda s, now: exchange(s, now=now),
    "hold": lambda s, now: s.hold("r1", [], now=now, hold_for=60),
    "release_lost": lambda s, now: s.release_lost(now=now, hold_for=60, max_attempts=3, limit=100),
    "cancel_job": lambda s, now: s.cancel_job("a", now=now),
}


def submit(store: Any, **changes: Any) -> object:
    """A submit that would work but for the changes."""
    arguments: dict[str, Any] = {"queue": "default", "home": None, "limits": WIDE, "now": T}
    job = changes.pop("job", job_of("new", total=1))
    targets = changes.pop("targets", targets_of("new", 1))
    return store.submit_job(job, targets, **(arguments | {"ttl": HOUR} | changes))


def exchange(store: Any, *outcomes: Outcome, **changes: Any) -> object:
    """An exchange that would work but for the changes."""
    arguments: dict[str, Any] = {"queue": "default", "want": 1, "shared": True, "now": T}
    arguments |= {"hold_for": 60, "max_bytes": 1000}
    return store.exchange(changes.pop("runner_id", "r1"), outcomes, **(arguments | changes))


def assert_refused(store: Repository, call: Callable[[], object], word: str | None = None) -> None:
    """The call is InvalidInput, which is a ValueError and names the word; nothing changes."""
    before, total = contents_of(store), store.nbytes()
    with pytest.raises(InvalidInput, match=word) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert (contents_of(store), store.nbytes()) == (before, total)


class BadInput(Contract):
    """The repository's methods."""

    @pytest.mark.parametrize("value", BAD_TEXTS)
    @pytest.mark.parametrize("field", ["id", "caller", "caller_class", "idem_key", "error"])
    def test_texts_of_a_job(self, store: Repository, field: str, value: Any) -> None:
        """NUL, a lone surrogate or no text at all in a job is refused by the field's name."""
        changes: dict[str, Any] = {field: value}
        assert_refused(store, lambda: store.create_job(replace(job_of("a"), **changes)), field)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("id", ""),
            ("id", "x" * 65),
            ("caller", "x" * 256),
            ("caller_class", "x" * 256),
            ("idem_key", "x" * 256),
            ("status", "finished"),
            ("targets_total", -1),
            ("targets_done", 0.5),
            ("created_at", math.nan),
            ("lease", math.inf),
            ("lease", None),
            ("nbytes", -1),
            ("nbytes", 2**63),
        ],
    )
    def test_values_of_a_job(self, store: Repository, field: str, value: Any) -> None:
        """A name too long, an unknown status or a number out of range is refused by its name."""
        changes: dict[str, Any] = {field: value}
        assert_refused(store, lambda: store.create_job(replace(job_of("a"), **changes)), field)

    @pytest.mark.parametrize("value", ["a\x00b", "\ud83d", 5])
    @pytest.mark.parametrize("field", ["url", "options", "result", "error", "hint"])
    def test_texts_of_a_target(self, store: Repository, field: str, value: Any) -> None:
        """NUL or a lone surrogate in a target is refused by the field's name (cases.md 22)."""
        add_job(store, "a", 1)
        changes: dict[str, Any] = {field: value}
        bad = replace(BatchTarget("a", 2, "u"), **changes)
        good = BatchTarget("a", 1, "u", "{}", TargetStatus.DONE, "x")
        assert_refused(store, lambda: store.put_targets("a", [good, bad]), field)

    @pytest.mark.parametrize("idx", [-1, 1.5, None, True, 2**31])
    def test_an_index_out_of_range(self, store: Repository, idx: Any) -> None:
        """An index that isn't a whole number from 0 is refused."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: store.put_targets("a", [BatchTarget("a", idx, "u")]), "idx")
        assert_refused(
            store, lambda: store.update_target("a", idx, now=T, status=TargetStatus.DONE), "idx"
        )

    @pytest.mark.parametrize("value", ["a\x00b", "\ud83d", 5])
    @pytest.mark.parametrize("field", ["result", "error", "hint"])
    def test_texts_of_a_write(self, store: Repository, field: str, value: Any) -> None:
        """NUL or a lone surrogate in a write is refused by the field's name."""
        add_job(store, "a", 1)
        texts: dict[str, Any] = {field: value}
        assert_refused(
            store,
            lambda: store.update_target("a", 0, now=T, status=TargetStatus.FAILED, **texts),
            field,
        )

    @pytest.mark.parametrize("status", [TargetStatus.PENDING, TargetStatus.RUNNING])
    @pytest.mark.parametrize("field", ["result", "error", "hint"])
    def test_an_unfinished_target_has_no_texts(
        self, store: Repository, status: TargetStatus, field: str
    ) -> None:
        """A write that leaves a target unfinished takes no result, error or hint (seed-000)."""
        add_job(store, "a", 1)
        texts: dict[str, Any] = {field: "x"}
        assert_refused(store, lambda: store.update_target("a", 0, now=T, status=status, **texts))

    def test_unknown_statuses(self, store: Repository) -> None:
        """A status that doesn't exist is refused."""
        add_job(store, "a", 1)
        odd: Any = "finished"
        assert_refused(store, lambda: store.update_target("a", 0, now=T, status=odd), "status")
        assert_refused(store, lambda: store.set_job_status("a", odd, now=T), "status")

    @pytest.mark.parametrize("value", BAD_TEXTS)
    def test_reasons(self, store: Repository, value: Any) -> None:
        """An error or reason that can't be stored is refused."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: store.mark_in_flight_failed(value, now=T), "reason")
        assert_refused(
            store, lambda: store.set_job_status("a", JobStatus.FAILED, now=T, error=value), "error"
        )

    @pytest.mark.parametrize("now", BAD_TIMES)
    @pytest.mark.parametrize("method", sorted(TIMED))
    def test_times(self, store: Repository, method: str, now: Any) -> None:
        """A time that isn't a finite number is refused as now."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: TIMED[method](store, now), "now")

    @pytest.mark.parametrize("value", [math.nan, math.inf, "1", True])
    def test_touching_reads(self, store: Repository, value: Any) -> None:
        """A touching read with an odd time is refused."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: store.get_job("a", touch_at=value), "touch_at")

    @pytest.mark.parametrize(
        "ttl", [timedelta(seconds=-1), timedelta(microseconds=-1), 5, None, math.nan]
    )
    def test_lifetimes(self, store: Repository, ttl: Any) -> None:
        """A ttl that is negative or no timedelta is refused; nothing is wiped (cases.md S13)."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: store.sweep(now=T + 9999, ttl=ttl), "ttl")
        assert_refused(store, lambda: store.find_job_by_idem_key("ada", "a", now=T, ttl=ttl), "ttl")

    @pytest.mark.parametrize("max_bytes", [-1, math.nan, 1.5, None, True])
    def test_budgets(self, store: Repository, max_bytes: Any) -> None:
        """A byte budget that isn't a whole number from 0 is refused (cases.md S13)."""
        store.create_job(job_of("a", status=JobStatus.DONE, nbytes=10))
        assert_refused(store, lambda: store.evict_oldest(max_bytes=max_bytes), "max_bytes")

    @pytest.mark.parametrize("limit", [-1, math.nan, 1.5, True])
    def test_limits(self, store: Repository, limit: Any) -> None:
        """A limit that isn't a whole number from 0 is refused."""
        add_job(store, "a", 1)
        assert_refused(store, lambda: store.sweep(now=T + 9999, ttl=HOUR, limit=limit), "limit")
        assert_refused(store, lambda: store.evict_oldest(max_bytes=0, limit=limit), "limit")
        assert_refused(store, lambda: store.get_targets("a", limit=limit), "limit")
        assert_refused(store, lambda: store.list_jobs(limit=limit), "limit")
        assert_refused(store, lambda: store.get_targets("a", start=limit), "start")

    def test_no_value_is_repeated(self, store: Repository) -> None:
        """An error doesn't repeat what was wrong, which may be a secret."""
        add_job(store, "a", 1)
        with pytest.raises(InvalidInput) as caught:
            store.put_targets("a", [BatchTarget("a", 1, "https://user:secret@example.org/\x00")])
        assert "secret" not in str(caught.value)
        assert "example" not in str(caught.value)


class BadJobInput(SubmittedContract):
    """The JobStore's methods."""

    @pytest.mark.parametrize("now", BAD_TIMES)
    @pytest.mark.parametrize("method", sorted(JOB_TIMED))
    def test_times_of_a_runner(self, store: Store, steps: Steps, method: str, now: Any) -> None:
        """A time that isn't a finite number is refused as now."""
        steps.submit("a", 2)
        assert_refused(store, lambda: JOB_TIMED[method](store, now), "now")

    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            ({"queue": ""}, "queue"),
            ({"queue": "x" * 256}, "queue"),
            ({"queue": "a\x00"}, "queue"),
            ({"home": "x" * 65}, "home"),
            ({"home": "\ud83d"}, "home"),
            ({"ttl": timedelta(seconds=-1)}, "ttl"),
            ({"ttl": 60}, "ttl"),
            ({"limits": Limits(0, 1, 1)}, "targets_per_job"),
            ({"limits": Limits(1, -1, 1)}, "jobs_per_caller"),
            ({"limits": Limits(1, 1, 1.5)}, "jobs_total"),  # type: ignore[arg-type]
            ({"job": job_of("new\x00", total=1)}, "id"),
            ({"job": job_of("new", caller="x" * 256, total=1)}, "caller"),
            ({"job": job_of("new", total=2)}, "targets_total"),
            ({"targets": [BatchTarget("new", 1, "u")]}, "idx"),
            ({"targets": [BatchTarget("other", 0, "u")]}, "job_id"),
            ({"targets": [BatchTarget("new", 0, "u\ud83d")]}, "url"),
            ({"targets": [BatchTarget("new", 0, "u", "\x00")]}, "options"),
        ],
    )
    def test_submits(self, store: Store, changes: dict[str, Any], word: str) -> None:
        """A submit with an odd argument is refused by its name, and nothing is stored."""
        assert_refused(store, lambda: submit(store, **changes), word)
        assert store.count_live_jobs() == 0

    def test_a_submit_is_of_something_new(self, store: Store) -> None:
        """A submitted job is queued and its targets are pending, else it is refused."""
        started: BatchJob = replace(job_of("new", total=1), status="running")  # type: ignore[arg-type]
        assert_refused(store, lambda: submit(store, job=started))
        finished = replace(targets_of("new", 1)[0], status=TargetStatus.DONE, result="x")
        assert_refused(store, lambda: submit(store, targets=[finished]))

    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            ({"runner_id": ""}, "runner_id"),
            ({"runner_id": "x" * 65}, "runner_id"),
            ({"queue": "a\x00"}, "queue"),
            ({"want": -1}, "want"),
            ({"want": 1.5}, "want"),
            ({"hold_for": 0}, "hold_for"),
            ({"hold_for": math.nan}, "hold_for"),
            ({"max_bytes": -1}, "max_bytes"),
        ],
    )
    def test_exchanges(
        self, store: Store, steps: Steps, changes: dict[str, Any], word: str
    ) -> None:
        """An exchange with an odd argument is refused by its name, and nothing is claimed."""
        steps.submit("a", 2)
        assert_refused(store, lambda: exchange(store, **changes), word)

    def test_unknown_kinds(self, store: Store, steps: Steps) -> None:
        """An outcome of a kind that doesn't exist is refused, with all that came with it."""
        steps.submit("a", 2)
        claim = steps.claim()
        odd: Any = Outcome("a", 0, claim.token, "perhaps")  # type: ignore[arg-type]
        assert_refused(store, lambda: exchange(store, odd), "kind")

    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            ({"hold_for": -1}, "hold_for"),
            ({"max_attempts": 0}, "max_attempts"),
            ({"limit": -1}, "limit"),
        ],
    )
    def test_releases(self, store: Store, steps: Steps, changes: dict[str, Any], word: str) -> None:
        """A release with an odd argument is refused by its name."""
        steps.submit("a", 2)
        steps.claim()
        good: dict[str, Any] = {"now": T + 500, "hold_for": 60, "max_attempts": 3, "limit": 9}
        assert_refused(store, lambda: store.release_lost(**(good | changes)), word)
