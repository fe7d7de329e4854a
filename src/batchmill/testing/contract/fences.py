"""The fence: an outcome without the current token changes nothing (design.md section 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchmill.records import Claim, JobStatus, Outcome
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    contents_of,
    done,
    fail_job,
    failed,
    job_in,
    later,
    put_back,
    race,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Store


def outcome_of(kind: str, claim: Claim) -> Outcome:
    """An outcome of each kind."""
    outcomes = {
        "done": done(claim, "late"),
        "failed": failed(claim, "late"),
        "later": later(claim, T),
        "put_back": put_back(claim),
        "fail_job": fail_job(claim, "late"),
    }
    return outcomes[kind]


KINDS = ["done", "failed", "later", "put_back", "fail_job"]


def lose(steps: Steps, count: int = 2) -> tuple[Claim, Claim]:
    """A claim that was lost and released, and the claim that another runner has in its place."""
    steps.submit("a", count)
    old = steps.claim(runner="r1")
    steps.release(now=T + 100)
    return old, steps.claim(runner="r2", now=T + 100)


class Fences(SubmittedContract):
    """Outcomes that come too late, or from nowhere."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_late_outcome_changes_nothing(self, store: Store, steps: Steps, kind: str) -> None:
        """While another runner holds the target, the old token's outcome is refused."""
        old, _ = lose(steps)
        before = contents_of(store)
        answer = steps.exchange(outcome_of(kind, old), now=T + 101)
        assert (answer.refused, answer.stored, answer.settled) == ([old.token], [], [])
        assert contents_of(store) == before
        assert steps.exchange(want=5, now=T + 101).claims == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_new_owner_wins(self, store: Store, steps: Steps, kind: str) -> None:
        """The result of who holds it now stands, and a zombie's is refused (cases.md S16)."""
        old, new = lose(steps, 1)
        steps.exchange(done(new, '"new"'), runner="r2", now=T + 101)
        before = contents_of(store)
        answer = steps.exchange(outcome_of(kind, old), now=T + 102)
        assert (answer.refused, answer.stored) == ([old.token], [])
        assert contents_of(store) == before
        assert (job_in(store, "a").targets_done, targets_in(store, "a")[0].result) == (1, '"new"')

    def test_a_late_outcome_in_between_is_refused(self, store: Store, steps: Steps) -> None:
        """Between release and the next claim nobody holds the target, and the old token is old."""
        steps.submit("a")
        old = steps.claim()
        steps.release(now=T + 100)
        assert steps.exchange(done(old), now=T + 101).refused == [old.token]
        assert statuses_in(store, "a") == ["pending"]

    def test_a_token_of_the_same_target_is_used_up(self, store: Store, steps: Steps) -> None:
        """After a put-back the same runner's first token no longer stores anything."""
        steps.submit("a", 2)
        first = steps.claim()
        second = steps.retry(put_back(first))
        assert second.idx == first.idx
        assert steps.exchange(done(first, "old")).refused == [first.token]
        assert steps.exchange(done(second, "new")).stored == [second.token]
        assert targets_in(store, "a")[0].result == "new"

    @pytest.mark.parametrize("token", ["", "x", "0" * 32])
    def test_a_made_up_token_is_refused(self, store: Store, steps: Steps, token: str) -> None:
        """Job and index alone store nothing: the token must be the current one."""
        steps.submit("a", 2)
        claim = steps.claim()
        answer = steps.exchange(done(replace(claim, token=token)))
        assert (answer.refused, answer.stored) == ([token], [])
        assert statuses_in(store, "a") == ["running", "pending"]

    def test_a_token_is_for_its_own_job(self, store: Store, steps: Steps) -> None:
        """One job's current token stores nothing in another job."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        of_a, of_b = steps.exchange(want=2).claims
        answer = steps.exchange(done(replace(of_b, token=of_a.token)))
        assert answer.stored == []
        assert statuses_in(store, "b") == ["running", "pending"]
        assert statuses_in(store, "a") == ["running", "pending"]

    def test_a_token_is_for_its_own_index(self, store: Store, steps: Steps) -> None:
        """A current token stores nothing at another index, and stays current for its own."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.cancel_job("a", now=T)
        elsewhere = done(replace(claim, idx=1))
        answer = steps.exchange(elsewhere)
        assert (answer.refused, answer.stored, answer.cancelled) == ([claim.token], [], ["a"])
        answer = steps.exchange(elsewhere, done(claim))
        assert (answer.refused, answer.stored, answer.cancelled) == ([claim.token],) * 2 + ([],)
        assert statuses_in(store, "a") == ["done", "pending"]

    @pytest.mark.parametrize(("runner", "queue"), [("r2", "default"), ("r1", "other")])
    def test_a_token_is_its_holders(
        self, store: Store, steps: Steps, runner: str, queue: str
    ) -> None:
        """A current token stores nothing for another runner, or through another queue."""
        steps.submit("a", 2)
        claim = steps.claim(runner="r1")
        answer = steps.exchange(done(claim), runner=runner, queue=queue)
        assert (answer.refused, answer.stored) == ([claim.token], [])
        assert steps.hold(claim.token, runner="r2", now=T, hold_for=60).lost == [claim.token]
        assert statuses_in(store, "a") == ["running", "pending"]

    def test_an_outcome_counts_once(self, store: Store, steps: Steps) -> None:
        """The same outcome again is refused, and nothing is counted twice."""
        steps.submit("a", 2)
        claim = steps.claim()
        assert steps.exchange(done(claim, "é")).stored == [claim.token]
        assert steps.exchange(done(claim, "é")).refused == [claim.token]
        assert (job_in(store, "a").targets_done, store.nbytes()) == (1, 2)

    def test_an_outcome_twice_in_one_set_counts_once(self, store: Store, steps: Steps) -> None:
        """Two outcomes with one token in one exchange store one target."""
        steps.submit("a", 2)
        claim = steps.claim()
        steps.exchange(done(claim, "é"), done(claim, "é"))
        assert (job_in(store, "a").targets_done, store.nbytes()) == (1, 2)
        assert statuses_in(store, "a") == ["done", "pending"]

    def test_a_refused_outcome_stops_no_other(self, store: Store, steps: Steps) -> None:
        """In one set what is current is stored and what isn't is refused."""
        old, new = lose(steps)
        steps.submit("b", now=T + 100)
        other = steps.claim(runner="r2", now=T + 100)
        answer = steps.exchange(done(old), done(new), done(other), runner="r2", now=T + 101)
        assert (set(answer.stored), answer.refused) == ({new.token, other.token}, [old.token])
        assert statuses_in(store, "a") == ["done", "pending"]
        assert job_in(store, "b").status is JobStatus.DONE

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_deleted_job_takes_no_outcome(self, store: Store, steps: Steps, kind: str) -> None:
        """The outcome of a job that is gone is refused, also when its id is used again."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.delete_job("a")
        assert steps.exchange(outcome_of(kind, claim)).refused == [claim.token]
        steps.submit("a", 2)
        before = contents_of(store)
        assert steps.exchange(outcome_of(kind, claim)).refused == [claim.token]
        assert contents_of(store) == before

    def test_a_lapsed_hold_may_still_store(self, store: Store, steps: Steps) -> None:
        """The token is the fence, not the time: a lapsed hold that nobody released still stores."""
        steps.submit("a")
        claim = steps.claim(hold_for=10)
        assert steps.exchange(done(claim), now=T + 500).stored == [claim.token]
        assert job_in(store, "a").status is JobStatus.DONE

    def test_a_stale_renewal_renews_nothing(self, store: Store, steps: Steps) -> None:
        """Renewing an old token says that it is lost, and doesn't extend the new hold."""
        old, _ = lose(steps)
        before = contents_of(store)
        held = steps.hold(old.token, now=T + 150, hold_for=1000)
        assert (held.lost, held.cancelled) == ([old.token], [])
        assert contents_of(store) == before
        assert steps.release(now=T + 160).put_back == 1

    def test_many_storers_of_one_token(self, store: Store, steps: Steps) -> None:
        """Of many threads with the same outcome one stores it, the others are refused."""
        steps.submit("a", 2)
        claim = steps.claim()
        answers = race(
            self.capabilities.threads, lambda number: steps.exchange(done(claim, "x" * number))
        )
        assert sum(len(answer.stored) for answer in answers) == 1
        assert sum(len(answer.refused) for answer in answers) == self.capabilities.threads - 1
        assert job_in(store, "a").targets_done == 1
