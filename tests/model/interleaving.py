"""Runners that interleave at random, and a watch over what they start.

The watch knows the rules only (design.md section 4, properties 1 and 2): a job has one target in
flight at the most, its targets start in order, and from the moment that it is ready at most
L - 1 targets of other jobs start before its own, L being the live jobs of that moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from batchmill.records import BatchJob, BatchTarget, Claim, Limits, Outcome, OutcomeKind

T = 1_000_000
HOLD = 30.0
WIDE = Limits(999, 999, 999)


@dataclass(slots=True)
class Wait:
    """A job that is ready: how many targets of others have started since, and how many may."""

    bound: int
    started: int = 0


@dataclass(slots=True)
class Watch:
    """Who is ready, who is in flight, and who has ended."""

    next_idx: dict[str, int] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    paused: dict[str, float] = field(default_factory=dict)
    in_flight: set[str] = field(default_factory=set)

    def submitted(self, job_id: str) -> None:
        self.next_idx[job_id] = 0
        self.ready(job_id)

    def ready(self, job_id: str) -> None:
        """The job may start from now on."""
        self.waits[job_id] = Wait(bound=len(self.next_idx) - 1)

    def pause(self, job_id: str, until: float) -> None:
        self.paused[job_id] = until

    def clock_is(self, now: float) -> None:
        """Jobs whose pause is over are ready from now on."""
        for job_id in [key for key, until in self.paused.items() if until <= now]:
            del self.paused[job_id]
            self.ready(job_id)

    def starts(self, claim: Claim) -> None:
        """A target starts: it is its job's next one, and nobody has waited for too long."""
        assert claim.job_id in self.waits, "it was not ready"
        assert claim.job_id not in self.in_flight
        assert claim.idx == self.next_idx[claim.job_id]
        del self.waits[claim.job_id]
        self.in_flight.add(claim.job_id)
        for wait in self.waits.values():
            wait.started += 1
            assert wait.started <= wait.bound

    def came_back(self, job_id: str, *, stored: bool) -> None:
        self.in_flight.remove(job_id)
        if stored and job_id in self.next_idx:
            self.next_idx[job_id] += 1

    def ended(self, job_id: str) -> None:
        """The job counts no more; what it has in flight may still come back."""
        self.next_idx.pop(job_id, None)
        self.waits.pop(job_id, None)
        self.paused.pop(job_id, None)


class Act(NamedTuple):
    """One step: ``submit`` of so many targets, an ``exchange``, a ``cancel``, or a ``release``."""

    what: str
    runner: str
    number: int
    kinds: list[OutcomeKind]
    after: float


KINDS: list[OutcomeKind] = ["done", "failed", "later", "put_back"]
ACTS = st.lists(
    st.builds(
        Act,
        what=st.sampled_from([*["submit"] * 3, *["exchange"] * 9, "cancel", "release"]),
        runner=st.sampled_from(["r1", "r2", "r3"]),
        number=st.integers(0, 4),
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
        after=st.sampled_from([*[0, 0.5, 1] * 3, 31]),
    ),
    min_size=30,
    max_size=70,
)


class Mill:
    """Runners on one store, and the watch over them."""

    def __init__(self, store: Any) -> None:
        self.store, self.watch = store, Watch()
        self.now = float(T)
        self.claims: dict[str, list[Claim]] = {"r1": [], "r2": [], "r3": []}
        self.made = 0

    def do(self, act: Act) -> None:
        self.now += act.after
        self.watch.clock_is(self.now)
        getattr(self, act.what)(act)

    def submit(self, act: Act) -> None:
        self.made += 1
        job_id = f"{'aAzZé'[self.made % 5]}{self.made}"
        targets = [BatchTarget(job_id, idx, "u") for idx in range(act.number + 1)]
        times: Any = {"created_at": self.now, "lease": self.now}
        job = BatchJob(job_id, "ada", "fleet", job_id, targets_total=len(targets), **times)
        options: Any = {"home": None, "limits": WIDE, "ttl": timedelta.max}
        self.store.submit_job(job, targets, queue="default", now=self.now, **options)
        self.watch.submitted(job_id)

    def exchange(self, act: Act) -> None:
        """Hand in the first of what the runner has, and claim so many."""
        mine = self.claims[act.runner]
        brought = list(zip(mine, act.kinds, strict=False))
        del mine[: len(brought)]
        ready_at = self.now + act.number / 2
        outcomes = [outcome_of(claim, kind, ready_at) for claim, kind in brought]
        answer = self.ask(act.runner, outcomes, act.number)
        refused = set(answer.refused)
        ended = {settled.job_id for settled in answer.settled}
        for outcome in outcomes:
            if outcome.token not in refused:
                self.back(outcome, outcome.job_id in ended)
        for claim in answer.claims:
            self.watch.starts(claim)
            mine.append(claim)

    def ask(self, runner: str, outcomes: list[Outcome], want: int) -> Any:
        options: Any = {"shared": True, "hold_for": HOLD, "max_bytes": 2**40}
        return self.store.exchange(
            runner, outcomes, queue="default", want=want, now=self.now, **options
        )

    def back(self, outcome: Outcome, ended: bool) -> None:
        """What was in flight came back: its job has ended, waits, or is ready again."""
        job_id = outcome.job_id
        self.watch.came_back(job_id, stored=outcome.kind in {"done", "failed"})
        if ended:
            self.watch.ended(job_id)
        elif job_id in self.watch.next_idx:
            if outcome.kind == "later" and outcome.ready_at is not None:
                self.watch.pause(job_id, outcome.ready_at)
                self.watch.clock_is(self.now)
            else:
                self.watch.ready(job_id)

    def cancel(self, act: Act) -> None:
        live = sorted(self.watch.next_idx)
        if live:
            job_id = live[act.number % len(live)]
            assert self.store.cancel_job(job_id, now=self.now) is not None
            self.watch.ended(job_id)

    def release(self, _: Act) -> None:
        """Look for lost runners; what they had in flight is ready again, or ended."""
        before = {key: turn for key, turn in self.held().items() if key in self.watch.in_flight}
        self.store.release_lost(now=self.now, hold_for=HOLD, max_attempts=99, limit=99)
        after = self.held()
        for job_id in [key for key in before if key not in after]:
            self.watch.came_back(job_id, stored=False)
            if job_id in self.watch.next_idx:
                self.watch.ready(job_id)

    def held(self) -> dict[str, int]:
        """The jobs with a running target, as the store shows them."""
        return {
            job.id: target.idx
            for job in self.store.list_jobs(limit=None)
            for target in self.store.get_targets(job.id)
            if target.status == "running"
        }

    def drain(self) -> None:
        """Whatever is in flight is lost; then the runners do all the rest."""
        self.do(Act("release", "r1", 0, [], 31))
        while self.watch.next_idx and self.now < T + 10_000:
            for runner, mine in self.claims.items():
                kinds: list[OutcomeKind] = ["done"] * len(mine)
                self.do(Act("exchange", runner, 1, kinds, 0.5))
        assert not self.watch.next_idx, "jobs were left over"


def outcome_of(claim: Claim, kind: OutcomeKind, ready_at: float) -> Outcome:
    outcome = Outcome(claim.job_id, claim.idx, claim.token, kind, ready_at=ready_at)
    return replace(outcome, result="{}") if kind == "done" else replace(outcome, error="e")
