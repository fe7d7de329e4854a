"""Retry-later: targets that wait until they are ready (seed-001, rule 3)."""

from __future__ import annotations

import pytest

from batchmill.records import JobStatus, Outcome, TargetStatus
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    done,
    job_in,
    later,
    put_back,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Store


class Waiting(SubmittedContract):
    """Outcomes of kind later."""

    def test_a_busy_target_is_pending(self, store: Store, steps: Steps) -> None:
        """A busy target is pending again, nothing is stored of it, the lease is now."""
        steps.submit("a", 2)
        answer = steps.exchange(later(steps.claim(), T + 2), now=T + 1.5)
        assert (answer.stored, answer.refused, answer.settled) == ([], [], [])
        job = job_in(store, "a")
        assert (job.status, job.targets_done, job.lease) == (JobStatus.RUNNING, 0, T + 1)
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert targets_in(store, "a")[0].error is None

    def test_it_is_not_tried_before_it_is_ready(self, steps: Steps) -> None:
        """A waiting target isn't claimed before ready_at, and is at ready_at."""
        steps.submit("a", 2)
        steps.exchange(later(steps.claim(), T + 2.5))
        assert steps.exchange(want=5, now=T + 2.4).claims == []
        claims = steps.exchange(want=5, now=T + 2.5).claims
        assert [(claim.job_id, claim.idx) for claim in claims] == [("a", 0)]

    def test_a_busy_target_without_a_time_is_ready_now(self, steps: Steps) -> None:
        """Where no ready_at is given it is the now of the exchange."""
        steps.submit("a")
        claim = steps.claim()
        steps.exchange(Outcome("a", 0, claim.token, "later"), now=T + 5.5)
        assert steps.exchange(want=1, now=T + 5.4).claims == []
        assert [each.idx for each in steps.exchange(want=1, now=T + 5.5).claims] == [0]

    def test_others_go_on_meanwhile(self, steps: Steps) -> None:
        """While one job waits the others take their turns, and it rejoins when ready."""
        steps.submit("a", 2)
        steps.submit("b", 3)
        claim = steps.retry(later(steps.claim(), T + 10))
        order = []
        for now in (T + 1, T + 20, T + 21):
            order.append((claim.job_id, claim.idx))
            claim = steps.exchange(done(claim), want=1, now=now).claims[0]
        assert order == [("b", 0), ("b", 1), ("a", 0)]

    def test_the_answer_says_when_to_come_back(self, steps: Steps) -> None:
        """When too few could be claimed, next_ready_at is when the first waiting one is ready."""
        for job_id, ready_at in [("a", T + 9.25), ("b", T + 5.5), ("c", T + 7.0)]:
            steps.submit(job_id)
            steps.exchange(later(steps.claim(), ready_at))
        assert steps.exchange(want=1).next_ready_at == T + 5.5
        answer = steps.exchange(want=5, now=T + 6)
        assert ([claim.job_id for claim in answer.claims], answer.next_ready_at) == (["b"], T + 7)

    def test_only_its_own_waiting_targets(self, steps: Steps) -> None:
        """next_ready_at is about what this runner may take: not another queue or home."""
        steps.submit("a", queue="other")
        steps.submit("b", home="r2")
        for queue, runner, ready_at in [("other", "r1", T + 3), ("default", "r2", T + 4)]:
            claim = steps.exchange(want=1, queue=queue, runner=runner).claims[0]
            steps.exchange(later(claim, ready_at), queue=queue, runner=runner)
        assert steps.exchange(want=1, runner="r1").next_ready_at is None
        assert steps.exchange(want=1, runner="r2").next_ready_at == T + 4

    def test_a_held_target_does_not_wait(self, steps: Steps) -> None:
        """A target in flight isn't a waiting one."""
        steps.submit("a", 2)
        steps.claim()
        assert steps.exchange(want=1).next_ready_at is None

    @pytest.mark.parametrize("kind", ["later", "put_back"])
    def test_nobody_sleeps_over_what_is_ready(self, steps: Steps, kind: str) -> None:
        """A target put back by an exchange is claimed by it, or next_ready_at isn't after now."""
        steps.submit("a")
        claim = steps.claim()
        answer = steps.exchange(
            later(claim, T - 1) if kind == "later" else put_back(claim), want=1, now=T
        )
        if not answer.claims:
            assert answer.next_ready_at is not None
            assert answer.next_ready_at <= T


class BusySince(SubmittedContract):
    """When a target first came back busy."""

    def test_the_first_time_counts(self, steps: Steps) -> None:
        """busy_since is the time of the first busy outcome, however many follow."""
        steps.submit("a")
        first = steps.claim()
        second = steps.retry(later(first, T), now=T + 1.5)
        third = steps.retry(later(second, T), now=T + 9)
        seen = [claim.busy_since for claim in (first, second, third)]
        assert seen == [None, T + 1.5, T + 1.5]

    def test_a_put_back_keeps_it(self, steps: Steps) -> None:
        """A put-back leaves busy_since alone, set or not."""
        steps.submit("a")
        claim = steps.retry(put_back(steps.claim()), now=T + 1)
        assert claim.busy_since is None
        claim = steps.retry(later(claim, T), now=T + 2)
        claim = steps.retry(put_back(claim), now=T + 3)
        assert claim.busy_since == T + 2

    def test_a_lost_hold_keeps_it(self, steps: Steps) -> None:
        """A lost hold leaves busy_since alone (design.md section 2)."""
        steps.submit("a")
        claim = steps.retry(later(steps.claim(), T), now=T + 2)
        assert steps.release(now=T + 100).put_back == 1
        claim = steps.claim(now=T + 100)
        assert claim.busy_since == T + 2

    def test_the_next_target_begins_anew(self, steps: Steps) -> None:
        """The target after a busy one has no busy_since and is ready at once."""
        steps.submit("a", 2)
        steps.exchange(later(steps.claim(), T + 50))
        claim = steps.claim(now=T + 50)
        assert claim.busy_since == T
        following = steps.exchange(done(claim), want=1, now=T + 50).claims[0]
        assert (following.idx, following.busy_since) == (1, None)

    def test_a_busy_target_stored_by_hand_holds_up_nothing(
        self, store: Store, steps: Steps
    ) -> None:
        """The target after a busy one that was stored by hand begins anew and is ready at once."""
        steps.submit("a", 2)
        steps.exchange(later(steps.claim(), T + 50))
        store.update_target("a", 0, now=T, status=TargetStatus.DONE)
        claim = steps.claim()
        assert (claim.idx, claim.busy_since) == (1, None)

    def test_a_put_back_is_ready_at_once(self, steps: Steps) -> None:
        """A target put back after a wait doesn't wait again."""
        steps.submit("a")
        steps.exchange(later(steps.claim(), T + 50))
        claim = steps.claim(now=T + 50)
        assert steps.retry(put_back(claim), now=T + 50).idx == 0
