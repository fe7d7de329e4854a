"""Whose turn it is: order, fairness, one target in flight per job (design.md section 4)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from batchmill.records import Claim, JobStatus, Outcome
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    add_job,
    done,
    failed,
    job_in,
    put_back,
    race,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Store


class Rotation(SubmittedContract):
    """The order in which targets start."""

    def test_two_jobs_alternate(self, steps: Steps) -> None:
        """One worker and two jobs: a1 b1 a2 b2 a3 b3 (seed-001, rule 2)."""
        steps.submit("a", 3)
        steps.submit("b", 3)
        order = steps.drain()
        assert order == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]

    def test_a_job_submitted_meanwhile_is_next(self, steps: Steps) -> None:
        """A job submitted while a's first target is in flight comes before a's second."""
        steps.submit("a", 2)
        first = steps.claim()
        steps.submit("b", 2)
        second = steps.exchange(done(first), want=1).claims[0]
        assert (second.job_id, second.idx) == ("b", 0)
        third = steps.exchange(done(second), want=1).claims[0]
        assert (third.job_id, third.idx) == ("a", 1)

    def test_the_rotation_is_in_submit_order(self, steps: Steps) -> None:
        """Jobs start in the order in which they were submitted, whatever their ids and times."""
        for number, job_id in enumerate(["c", "a", "d", "b"]):
            steps.submit(job_id, now=T - number)
        assert [job_id for job_id, _ in steps.drain(now=T)] == ["c", "a", "d", "b"]

    def test_every_job_has_its_turn(self, steps: Steps) -> None:
        """With L jobs at most L-1 targets of others start between two of one job."""
        for job_id, count in [("a", 9), ("b", 9), ("c", 9), ("d", 9)]:
            steps.submit(job_id, count)
        order = [job_id for job_id, _ in steps.drain()]
        for job_id in "abcd":
            places = [place for place, other in enumerate(order) if other == job_id]
            assert max(after - before for before, after in pairwise(places)) <= 4
            assert places[0] < 4

    def test_a_large_job_starves_nobody(self, steps: Steps) -> None:
        """Beside a job of many targets a small one starts within two (cases.md S2)."""
        steps.submit("a", 100)
        claim = steps.claim()
        steps.submit("b", 1)
        order = []
        for _ in range(2):
            claim = steps.exchange(done(claim), want=1).claims[0]
            order.append(claim.job_id)
        assert "b" in order

    def test_a_target_put_back_goes_last(self, steps: Steps) -> None:
        """A target that was put back waits for the others' next targets, and is tried again."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        claim = steps.claim()
        claim = steps.retry(put_back(claim))
        assert claim.job_id == "b"
        claim = steps.exchange(done(claim), want=1).claims[0]
        assert (claim.job_id, claim.idx) == ("a", 0)

    def test_what_was_put_back_keeps_its_place_before_what_was_stored_after_it(
        self, steps: Steps
    ) -> None:
        """In one exchange too, places are given in the order of its outcomes."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        first, second = steps.exchange(want=2).claims
        answer = steps.exchange(put_back(first), done(second), want=1)
        claims = answer.claims or steps.exchange(want=1).claims
        assert [(each.job_id, each.idx) for each in claims] == [("a", 0)]

    def test_a_put_back_is_no_slot_more(self, steps: Steps) -> None:
        """An exchange that puts a target back claims no more than it was asked for."""
        steps.submit("a")
        claim = steps.claim()
        steps.submit("b")
        claims = steps.exchange(put_back(claim), want=1).claims
        assert [each.job_id for each in claims] == ["b"]

    def test_several_claims_at_once(self, steps: Steps) -> None:
        """Many claims in one exchange are the next target of as many jobs, in rotation order."""
        for job_id in "abc":
            steps.submit(job_id, 2)
        claims = steps.exchange(want=2).claims
        assert [(claim.job_id, claim.idx) for claim in claims] == [("a", 0), ("b", 0)]
        more = steps.exchange(done(claims[0]), want=9).claims
        assert [(claim.job_id, claim.idx) for claim in more] == [("c", 0), ("a", 1)]

    def test_nothing_is_claimed_unasked(self, store: Store, steps: Steps) -> None:
        """An exchange that wants nothing claims nothing."""
        steps.submit("a")
        assert steps.exchange(want=0).claims == []
        assert statuses_in(store, "a") == ["pending"]

    def test_a_job_made_by_hand_has_no_turn(self, store: Store, steps: Steps) -> None:
        """No runner takes a job made by create_job and put_targets."""
        add_job(store, "hand", 2)
        assert steps.drain() == []
        assert job_in(store, "hand").status is JobStatus.QUEUED

    def test_an_empty_store_has_nothing(self, steps: Steps) -> None:
        """With nothing to do an exchange answers with nothing, and nothing waits."""
        answer = steps.exchange(want=5)
        assert (answer.claims, answer.settled, answer.next_ready_at) == ([], [], None)

    def test_unequal_jobs_all_end(self, store: Store, steps: Steps) -> None:
        """Jobs of any sizes all end, every target started once, each job's in order."""
        sizes = {"a": 1, "b": 5, "c": 2, "d": 3}
        for job_id, count in sizes.items():
            steps.submit(job_id, count)
        order = steps.drain()
        for job_id, count in sizes.items():
            assert [idx for other, idx in order if other == job_id] == list(range(count))
            assert job_in(store, job_id).status is JobStatus.DONE


class Serial(SubmittedContract):
    """A job has one target in flight at most (design.md section 4, property 1)."""

    def test_one_target_in_flight(self, store: Store, steps: Steps) -> None:
        """A job whose target is in flight has nothing to claim, for any runner, until it's back."""
        steps.submit("a", 3)
        claim = steps.claim()
        assert steps.exchange(want=5).claims == []
        assert steps.exchange(want=5, runner="r2").claims == []
        assert statuses_in(store, "a") == ["running", "pending", "pending"]
        following = steps.exchange(done(claim), want=5).claims
        assert [claim.idx for claim in following] == [1]

    def test_a_failed_target_lets_the_next_start(self, steps: Steps) -> None:
        """After a failed target comes the next one, as after a done one."""
        steps.submit("a", 2)
        assert steps.exchange(failed(steps.claim()), want=1).claims[0].idx == 1

    def test_claimers_never_share_a_target(self, store: Store, steps: Steps) -> None:
        """Many claimers at once: every target is started once, and none before the one before."""
        jobs, targets, threads = 6, 5, self.capabilities.threads
        for number in range(jobs):
            steps.submit(f"j{number}", targets)

        def work(number: int) -> list[tuple[str, int]]:
            mine: list[tuple[str, int]] = []
            outcomes: list[Outcome] = []
            for _ in range(400):
                answer = steps.exchange(*outcomes, want=2, runner=f"r{number}")
                assert not answer.refused
                mine += [(claim.job_id, claim.idx) for claim in answer.claims]
                outcomes = [done(claim) for claim in answer.claims]
                if not outcomes and store.count_live_jobs() == 0:
                    break
            return mine

        started = Counter(start for part in race(threads, work) for start in part)
        assert set(started.values()) == {1}
        assert len(started) == jobs * targets
        assert {job.status for job in store.list_jobs()} == {JobStatus.DONE}

    def test_one_free_target_goes_to_one_claimer(self, store: Store, steps: Steps) -> None:
        """Of many that claim the only target at once exactly one gets it."""
        steps.submit("a", 3)
        answers = race(
            self.capabilities.threads, lambda number: steps.exchange(want=1, runner=f"r{number}")
        )
        claims = {
            f"r{number}": claim for number, answer in enumerate(answers) for claim in answer.claims
        }
        assert [(claim.job_id, claim.idx) for claim in claims.values()] == [("a", 0)]
        for runner, claim in claims.items():
            assert steps.exchange(done(claim), runner=runner).stored == [claim.token]
        assert job_in(store, "a").targets_done == 1


class Claims(SubmittedContract):
    """What a claim says and does."""

    def test_a_claim_carries_its_target(self, store: Store, steps: Steps) -> None:
        """A claim has the target's url and options, the job's caller and class, and attempt 1."""
        steps.submit("a", 2, caller="bob")
        claim = steps.claim()
        target = targets_in(store, "a")[0]
        assert claim == Claim(
            job_id="a",
            idx=0,
            token=claim.token,
            attempt=1,
            busy_since=None,
            caller="bob",
            caller_class="restricted",
            url=target.url,
            options=target.options,
        )

    def test_a_claim_starts_job_and_target(self, store: Store, steps: Steps) -> None:
        """A claim makes job and target running and sets the lease; a job not reached is queued."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        steps.claim(now=T + 5.5)
        job = job_in(store, "a")
        assert (job.status, job.lease, statuses_in(store, "a")) == (
            JobStatus.RUNNING,
            T + 5,
            ["running", "pending"],
        )
        assert job_in(store, "b").status is JobStatus.QUEUED

    def test_every_claim_has_its_own_token(self, steps: Steps) -> None:
        """Tokens differ between jobs, targets and attempts, and are hard to guess."""
        for number in range(5):
            steps.submit(f"j{number}", 2)
        claims = list(steps.exchange(want=5).claims)
        steps.exchange(*(put_back(claim) for claim in claims))
        claims += steps.exchange(want=5).claims
        claims += steps.exchange(*(done(claim) for claim in claims[5:]), want=5).claims
        tokens = {claim.token for claim in claims}
        assert len(tokens) == 15
        assert all(len(token) >= 16 for token in tokens)

    @pytest.mark.parametrize("now", [0, -0.5, -5, -(10**12)])
    def test_a_clock_before_1970_is_a_clock(self, steps: Steps, now: float) -> None:
        """What needn't wait is claimed by any clock: new, after a store, put back or lost."""
        steps.submit("a", 2, now=now)
        claim = steps.retry(put_back(steps.claim(now=now)), now=now)
        claim = steps.exchange(done(claim), want=1, now=now).claims[0]
        assert (claim.idx, steps.release(now=now + 60).put_back) == (1, 1)
        assert steps.claim(now=now).idx == 1

    def test_attempts_are_counted(self, steps: Steps) -> None:
        """attempt is 1 plus the earlier starts of that target; the next target begins at 1."""
        steps.submit("a", 2)
        claim = steps.claim()
        attempts = [claim.attempt]
        for _ in range(2):
            claim = steps.retry(put_back(claim))
            attempts.append(claim.attempt)
        claim = steps.exchange(done(claim), want=1).claims[0]
        assert (attempts, claim.attempt, claim.idx) == ([1, 2, 3], 1, 1)

    def test_a_claim_is_a_hold(self, steps: Steps) -> None:
        """A claim lasts for hold_for: before that nobody can release it, at that time it lapses."""
        steps.submit("a")
        steps.claim(hold_for=7.5)
        assert steps.release(now=T + 7.4).put_back == 0
        assert steps.release(now=T + 7.5).put_back == 1


class Queues(SubmittedContract):
    """Which runner a job is for."""

    def test_queues_are_apart(self, steps: Steps) -> None:
        """A runner claims from its own queue only."""
        steps.submit("a", queue="one")
        steps.submit("b", queue="two")
        claims = steps.exchange(want=5, queue="two").claims
        assert [claim.job_id for claim in claims] == ["b"]
        assert steps.exchange(want=5).claims == []

    def test_a_home_job_is_for_its_home(self, steps: Steps) -> None:
        """A job with a home is claimed by that runner only, shared or not."""
        steps.submit("a", home="r1")
        assert steps.exchange(want=5, runner="r2", shared=True).claims == []
        assert len(steps.exchange(want=5, runner="r1", shared=False).claims) == 1

    def test_a_shared_job_is_for_sharers(self, steps: Steps) -> None:
        """A job without a home is claimed by runners that share only."""
        steps.submit("a")
        assert steps.exchange(want=5, shared=False).claims == []
        assert len(steps.exchange(want=5, shared=True).claims) == 1

    def test_a_sharer_takes_both_in_turn(self, steps: Steps) -> None:
        """A runner that shares takes its own and the shared jobs in one rotation."""
        steps.submit("a")
        steps.submit("b", home="r1")
        steps.submit("c", home="r2")
        steps.submit("d")
        claims = steps.exchange(want=5, runner="r1").claims
        assert [claim.job_id for claim in claims] == ["a", "b", "d"]

    @pytest.mark.parametrize("name", ["Queue", "queue ", "qué"])
    def test_queue_names_compare_by_bytes(self, steps: Steps, name: str) -> None:
        """Queues whose names differ in case, blanks or accents are different queues."""
        steps.submit("a", queue="queue")
        steps.submit("b", queue=name)
        assert [claim.job_id for claim in steps.exchange(want=5, queue=name).claims] == ["b"]
