"""The JobStore half of the surface: two runners, shared and local, in two queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from batchmill.records import BatchJob, BatchTarget, Claim, Limits, Outcome
from tests.model import values as draw
from tests.model.machine import Machine, accepted
from tests.model.values import OFFERS, Draft, Moment, Offer

FATES = st.lists(st.sampled_from(["done", "done", "failed"]), min_size=4, max_size=4)


class RunnerRules(Machine):
    """submit_job, exchange, hold, leave, release_lost, cancel_job."""

    @initialize(counts=st.lists(st.integers(1, 5), min_size=1, max_size=5))
    def begin(self, counts: list[int]) -> None:
        """Something to work on, else most examples would never come to it."""
        for number, count in enumerate(counts):
            caller = ["ada", "bob"][number % 2]
            self.offer(Offer(30, count, caller, "", True, "u", "default", None), draw.WIDE)

    @rule(offer=OFFERS, limits=draw.CAPS, moment=draw.MOMENTS, ttl=draw.TTLS)
    def submit(self, offer: Offer, limits: Limits, moment: Moment, ttl: timedelta) -> None:
        """A submit: it is stored, reused, or rejected by a cap."""
        self.at(moment)
        self.offer(offer, limits, ttl)

    def offer(self, offer: Offer, limits: Limits, ttl: timedelta = timedelta.max) -> None:
        """One submit, now."""
        job_id, now = self.new_id(offer.pick), self.clock
        key = job_id if offer.own_key else offer.key
        times: Any = {"created_at": now, "lease": now}
        job = BatchJob(job_id, offer.caller, "fleet", key, targets_total=offer.targets, **times)
        targets = [BatchTarget(job_id, idx, offer.url, f"[{idx}]") for idx in range(offer.targets)]
        options = {"queue": offer.queue, "home": offer.home, "limits": limits}
        answer = self.ask(
            lambda side: side.store.submit_job(job, targets, **options, now=now, ttl=ttl)
        )
        if accepted(answer) and answer.job_id is not None and not answer.reused:
            self.history.made(job_id, submitted=True)

    @rule(
        runner=draw.RUNNERS,
        queue=draw.QUEUES,
        drafts=st.lists(draw.DRAFTS, max_size=4),
        want=st.integers(0, 4),
        shared=draw.mostly([True], [False]),
        moment=draw.MOMENTS,
        hold_for=draw.HOLDS,
        max_bytes=draw.BUDGETS,
    )
    def exchange(
        self,
        runner: str,
        queue: str,
        drafts: list[Draft],
        want: int,
        shared: bool,
        moment: Moment,
        hold_for: float,
        max_bytes: int,
    ) -> None:
        """Outcomes of every kind, current, late, doubled and made up, and claims."""
        now = self.at(moment)
        outcomes = [self.outcome(draft, runner, queue, now) for draft in drafts]
        options = {"want": want, "shared": shared, "hold_for": hold_for, "max_bytes": max_bytes}
        self.swap(runner, queue, outcomes, now, options)

    def swap(
        self, runner: str, queue: str, outcomes: list[Outcome], now: float, options: dict[str, Any]
    ) -> None:
        """One exchange; its claims are remembered for good."""
        answer = self.ask(
            lambda side: side.store.exchange(
                runner, side.outcomes(outcomes), queue=queue, now=now, **options
            )
        )
        if accepted(answer):
            self.claims += answer.claims
            self.settle(answer.settled)

    def outcome(self, draft: Draft, runner: str, queue: str, now: float) -> Outcome:
        """An outcome of what this runner holds, or of any claim there ever was, or of none."""
        held = self.pair.in_flight(runner, queue)
        known = [claim for claim in self.claims if draft.stale or claim.token in held]
        known = known or self.claims
        texts: dict[str, Any] = {"done": {"result": draft.text}}.get(
            draft.kind, {"error": draft.text, "hint": draft.hint}
        )
        kind: Any = draft.kind
        ready_at = None if draft.ready_in is None else now + draft.ready_in
        if not known:
            return Outcome("nobody", 0, "made-up", kind, **texts)
        claim = known[-1 - draft.which % len(known)]
        return Outcome(
            claim.job_id if draft.bent != "job" else self.job_id(draft.which),
            claim.idx + (draft.bent == "idx"),
            claim.token if draft.bent != "token" else "made-up",
            kind,
            **texts,
            ready_at=ready_at,
        )

    @rule(
        runner=draw.RUNNERS,
        picks=st.lists(draw.PICKS, max_size=4),
        moment=draw.MOMENTS,
        hold_for=draw.HOLDS,
    )
    def hold(self, runner: str, picks: list[int], moment: Moment, hold_for: float) -> None:
        """A renewal of what is held, mixed with what is lost, another's, or made up."""
        now = self.at(moment)
        known = self.pair.in_flight(runner, "default") + [claim.token for claim in self.claims]
        labels = [known[pick % len(known)] if known and pick < 28 else "made-up" for pick in picks]
        self.ask(
            lambda side: side.store.hold(
                runner, [side.token(label) for label in labels], now=now, hold_for=hold_for
            )
        )

    @rule(runner=draw.RUNNERS)
    def leave(self, runner: str) -> None:
        """A runner that closes."""
        self.ask(lambda side: side.store.leave(runner))

    @rule(
        moment=draw.MOMENTS,
        hold_for=draw.HOLDS,
        max_attempts=st.integers(1, 3),
        limit=st.sampled_from([0, 1, 2, 100, 100]),
    )
    def release_lost(self, moment: Moment, hold_for: float, max_attempts: int, limit: int) -> None:
        """What lapsed is put back or fails, and local jobs of lost homes fail."""
        options = {"hold_for": hold_for, "max_attempts": max_attempts, "limit": limit}
        now = self.at(moment)
        answer = self.ask(lambda side: side.store.release_lost(now=now, **options))
        self.settle(answer.settled)

    @rule(pick=draw.PICKS, moment=draw.MOMENTS)
    def cancel(self, pick: int, moment: Moment) -> None:
        """A cancel, of a live job or too late."""
        job_id, now = self.job_id(pick), self.at(moment)
        settled = self.ask(lambda side: side.store.cancel_job(job_id, now=now))
        self.settle([] if settled is None else [settled])


class RoundRules(RunnerRules):
    """Rounds of a runner that goes on as runners do: without them few jobs would ever end."""

    @rule(moment=draw.MOMENTS, want=st.integers(1, 4), fates=FATES, text=draw.TEXTS)
    def work(self, moment: Moment, want: int, fates: list[str], text: str) -> None:
        """All that is in flight is stored, more is claimed."""
        self.round(fates, want, self.at(moment), text)

    @rule(want=st.integers(1, 4), fates=FATES)
    def work_on(self, want: int, fates: list[str]) -> None:
        """The same at once."""
        self.round(fates, want, self.clock, "on")

    @rule(moment=draw.MOMENTS, kinds=st.lists(draw.AGAIN, min_size=4, max_size=4))
    def try_again(self, moment: Moment, kinds: list[str]) -> None:
        """All that is in flight comes back, and whatever is ready is claimed."""
        self.round(kinds, 4, self.at(moment), "busy")

    @rule(after=st.sampled_from([59, 60, 61, 3600]), max_attempts=st.integers(1, 3))
    def lose(self, after: int, max_attempts: int) -> None:
        """Time goes by in which nobody renews, then somebody looks for the lost."""
        self.round([], 2, self.clock, "")
        now = self.at(Moment(after))
        options = {"hold_for": 60, "max_attempts": max_attempts, "limit": 100}
        answer = self.ask(lambda side: side.store.release_lost(now=now, **options))
        self.settle(answer.settled)

    def round(self, kinds: Sequence[str], want: int, now: float, text: str) -> None:
        """Hand in what each of the runner's claims came to, and claim."""
        held = self.pair.in_flight("r1", "default")
        mine = [claim for claim in self.claims if claim.token in held]
        outcomes = [
            outcome_of(claim, kinds[number % len(kinds)], text, now + (number + 1) / 2)
            for number, claim in enumerate(mine)
            if kinds
        ]
        options = {"want": want, "shared": True, "hold_for": 60, "max_bytes": 2**40}
        self.swap("r1", "default", outcomes, now, options)


def outcome_of(claim: Claim, kind: Any, text: str, ready_at: float) -> Outcome:
    """An outcome of a kind with the texts that belong to it."""
    texts: dict[str, Any] = {"result": text} if kind == "done" else {"error": text}
    return Outcome(claim.job_id, claim.idx, claim.token, kind, **texts, ready_at=ready_at)
