"""spec/seed-000, the store: each numbered rule, on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from batchmill.errors import JobNotFound, TargetNotFound
from batchmill.records import BatchJob, BatchTarget, CallerClass, JobStatus, TargetStatus

NOW = 1_000_000
TTL = timedelta(hours=1)


def make(store: Any, job_id: str, *, status: str = "queued", lease: int = NOW, **more: Any) -> None:
    """A job with two pending targets."""
    job = BatchJob(
        id=job_id,
        caller=more.get("caller", "ada"),
        caller_class=CallerClass.RESTRICTED,
        idem_key=more.get("key", job_id),
        status=JobStatus(status),
        targets_total=2,
        created_at=NOW,
        lease=lease,
    )
    store.create_job(job)
    store.put_targets(job_id, [BatchTarget(job_id, idx, f"https://x.test/{idx}") for idx in (0, 1)])


def finish(store: Any, job_id: str, result: str, *, now: int = NOW) -> None:
    """The job's first target is done, and so is the job."""
    store.update_target(job_id, 0, now=now, status=TargetStatus.DONE, result=result)
    store.set_job_status(job_id, JobStatus.DONE, now=now)


def test_a_job_is_stored_as_given(store: Any) -> None:
    """spec/seed-000, rule 1: create stores the job as given, lease and created_at included."""
    job = BatchJob("a", "ada", "fleet", "k", JobStatus.PARTIAL, "e", 3, 2, NOW - 9, NOW + 9, 7)
    store.create_job(job)
    assert store.get_job("a") == job


def test_every_write_bumps_the_lease(store: Any) -> None:
    """spec/seed-000, rule 1: update, set status, touch and mark set the lease to their now."""
    make(store, "a")
    leases = []
    for number, write in enumerate(
        [
            lambda now: store.update_target("a", 0, now=now, status=TargetStatus.DONE),
            lambda now: store.set_job_status("a", JobStatus.RUNNING, now=now),
            lambda now: store.touch_job("a", now=now),
            lambda now: store.mark_in_flight_failed("restarted", now=now),
        ],
        start=1,
    ):
        write(NOW + number)
        leases.append(store.get_job("a").lease - NOW)
    assert leases == [1, 2, 3, 4]


def test_a_read_bumps_the_lease_when_asked(store: Any) -> None:
    """spec/seed-000, rule 1: a read keeps the job alive, here where it is given touch_at."""
    make(store, "a")
    assert store.get_job("a").lease == NOW
    assert store.get_job("a", touch_at=NOW + 5).lease == NOW + 5
    assert store.get_job("a").lease == NOW + 5


def test_accessors_go_by_job_id_only(store: Any) -> None:
    """spec/seed-000, rule 2: any caller's job is returned for its id; the filter is not here."""
    for caller in ("ada", "bob"):
        make(store, f"of-{caller}", caller=caller)
    assert {store.get_job(f"of-{caller}").caller for caller in ("ada", "bob")} == {"ada", "bob"}
    assert len(store.get_targets("of-bob")) == 2


def test_targets_come_in_order(store: Any) -> None:
    """spec/seed-000, rule 3: targets are returned in idx order, however they were put."""
    store.create_job(BatchJob("a", "ada", "fleet", "k", targets_total=11))
    order = [7, 0, 10, 2, 1, 9, 3, 8, 4, 6, 5]
    store.put_targets("a", [BatchTarget("a", idx, f"u{idx}") for idx in order])
    assert [target.idx for target in store.get_targets("a")] == sorted(order)


def test_a_finished_target_counts_once(store: Any) -> None:
    """spec/seed-000, rule 3: targets_done rises once per target, a re-write doesn't count."""
    make(store, "a")
    counts = []
    for idx, status in [(0, "running"), (0, "done"), (0, "done"), (0, "failed"), (1, "failed")]:
        store.update_target("a", idx, now=NOW, status=TargetStatus(status))
        counts.append(store.get_job("a").targets_done)
    assert counts == [0, 1, 1, 1, 2]


def test_result_bytes_are_counted(store: Any) -> None:
    """spec/seed-000, rule 3: nbytes rises by the bytes of the result, not its characters."""
    make(store, "a")
    results = ['{"content":"é😀"}', '{"content":"\\u00e9\\n"}']
    for idx, result in enumerate(results):
        store.update_target("a", idx, now=NOW, status=TargetStatus.DONE, result=result)
    assert store.get_job("a").nbytes == sum(len(result.encode("utf-8")) for result in results)


def test_a_sweep_goes_by_the_lease(store: Any) -> None:
    """spec/seed-000, rule 4: lease + ttl <= now goes with its targets, and is counted."""
    for job_id, lease in [("out", NOW - 3600), ("in", NOW - 3599), ("live", NOW - 9999)]:
        make(store, job_id, lease=lease, status="queued" if job_id == "live" else "done")
    assert store.sweep(now=NOW, ttl=TTL) == 2
    assert [store.get_targets(job_id) is None for job_id in ("out", "live", "in")] == [
        True,
        True,
        False,
    ]


def test_eviction_takes_whole_old_jobs(store: Any) -> None:
    """spec/seed-000, rule 5: whole jobs go, oldest lease first, until the total fits."""
    for number, job_id in enumerate(["c", "a", "b"]):
        make(store, job_id)
        finish(store, job_id, "x" * 10, now=NOW + number)
    assert store.evict_oldest(max_bytes=15) == 2
    assert (store.get_job("c"), store.get_targets("a"), store.nbytes()) == (None, None, 10)


def test_eviction_never_takes_a_live_job(store: Any) -> None:
    """spec/seed-000, rule 5: a queued or running job is never evicted for its bytes."""
    for job_id, status in [("q", "queued"), ("r", "running")]:
        make(store, job_id, status=status)
        store.update_target(job_id, 0, now=NOW, status=TargetStatus.DONE, result="x" * 10)
    assert store.evict_oldest(max_bytes=0) == 0
    assert store.nbytes() == 20


def test_what_was_in_flight_fails(store: Any) -> None:
    """spec/seed-000, rule 6: every live job is failed with the reason, bumped and counted."""
    for status in JobStatus:
        make(store, str(status), status=status)
    assert store.mark_in_flight_failed("restarted", now=NOW + 5) == 2
    for job_id in ("queued", "running"):
        job = store.get_job(job_id)
        assert (job.status, job.error, job.lease) == (JobStatus.FAILED, "restarted", NOW + 5)
    assert store.get_job("done").lease == NOW


def test_bytes_are_summed_over_jobs(store: Any) -> None:
    """spec/seed-000, rule 7: nbytes is the sum over all jobs, and a budget of its own."""
    for job_id, result in [("a", "é"), ("b", "xyz")]:
        make(store, job_id)
        finish(store, job_id, result)
    assert store.nbytes() == store.get_job("a").nbytes + store.get_job("b").nbytes == 5


def test_reads_answer_none_and_count_misses(store: Any) -> None:
    """spec/seed-000, rule 8: what isn't there is None, never an exception, and a counted miss."""
    assert store.get_job("nobody") is None
    assert store.get_targets("nobody") is None
    assert store.find_job_by_idem_key("ada", "k", now=NOW, ttl=TTL) is None
    misses = store.stats().misses
    names = ("get_job", "get_targets", "find_job_by_idem_key")
    assert [misses.get(name, 0) for name in names] == [1, 1, 1]


def test_writes_to_nothing_are_errors(store: Any) -> None:
    """spec/seed-000, rule 8: a write to what isn't there is an error of batchmill's own."""
    with pytest.raises(JobNotFound):
        store.touch_job("nobody", now=NOW)
    with pytest.raises(TargetNotFound):
        store.update_target("nobody", 0, now=NOW, status=TargetStatus.DONE)


def test_the_classes_have_names(store: Any) -> None:
    """spec/seed-000, rule 8: fleet and restricted are constants, stored as that text."""
    assert (CallerClass.FLEET, CallerClass.RESTRICTED) == ("fleet", "restricted")
    store.create_job(BatchJob("a", "ada", CallerClass.FLEET, "k"))
    assert store.get_job("a").caller_class == "fleet"
