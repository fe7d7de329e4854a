"""The state machine, without threads."""

from __future__ import annotations

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from batchmill.records import Claim, Exchange, Outcome
from batchmill.runner.dispatch import Dispatch
from batchmill.runner.pauses import LONGEST_PAUSE, backoff


def claim(number: int) -> Claim:
    return Claim(f"job{number}", 0, f"token{number}", 1, None, "anna", "restricted", "u", "{}")


def done(claimed: Claim) -> Outcome:
    return Outcome(claimed.job_id, claimed.idx, claimed.token, "done", "1")


def answered(dispatch: Dispatch, now: float, *claims: Claim, ready_in: float | None = None):
    ask = dispatch.ask(now)
    assert ask is not None
    return dispatch.answer(ask, Exchange(claims=claims), now=now, ready_in=ready_in)


def test_it_asks_for_as_many_targets_as_slots_are_free():
    """``want`` is the idle slots only."""
    dispatch = Dispatch(3, poll_interval=1.0)
    assert dispatch.ask(0.0).want == 3
    dispatch = Dispatch(3, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1), claim(2))
    assert dispatch.ask(1.0).want == 1


def test_one_exchange_is_under_way_at_a_time():
    """What is delivered meanwhile goes into the next one, together."""
    dispatch = Dispatch(3, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1), claim(2), claim(3))
    dispatch.deliver(done(claim(1)))
    first = dispatch.ask(0.0)
    dispatch.deliver(done(claim(2)))
    dispatch.deliver(done(claim(3)))
    assert dispatch.ask(0.0) is None
    dispatch.answer(first, Exchange(), now=0.0, ready_in=None)
    assert [each.token for each in dispatch.ask(0.0).outcomes] == ["token2", "token3"]


def test_an_idle_one_polls_at_the_next_ready_time_or_the_interval():
    """The earlier of both; a time that is (nearly) past is no hot loop."""
    for ready_in, due in [(None, 1.0), (0.25, 0.25), (7.0, 1.0), (-3.0, 0.002)]:
        dispatch = Dispatch(1, poll_interval=1.0)
        answered(dispatch, 0.0, ready_in=ready_in)
        assert dispatch.due() == due


def test_a_wake_is_not_lost_while_an_exchange_is_under_way():
    """A submit during an exchange makes the next one due at once, and nothing is dry before it."""
    dispatch = Dispatch(1, poll_interval=1.0)
    answered(dispatch, 0.0)
    assert dispatch.dry
    ask = dispatch.ask(1.0)
    dispatch.wake()
    dispatch.answer(ask, Exchange(), now=1.0, ready_in=None)
    assert not dispatch.dry
    assert dispatch.due() <= 1.0


def test_what_could_not_be_stored_is_kept_in_order_and_tried_later():
    """A failed exchange loses nothing, and pauses, longer each time, up to a bound."""
    dispatch = Dispatch(2, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1), claim(2))
    dispatch.deliver(done(claim(1)))
    ask = dispatch.ask(0.0)
    dispatch.deliver(done(claim(2)))
    pause = dispatch.failed(ask, now=0.0, jitter=0.5)
    assert 0 < pause <= LONGEST_PAUSE
    assert dispatch.ask(pause / 2) is None
    assert [each.token for each in dispatch.ask(pause).outcomes] == ["token1", "token2"]


def test_nothing_is_asked_while_every_slot_is_taken():
    """Without a free slot and with nothing to store no exchange is due, not even for a wake."""
    dispatch = Dispatch(1, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1))
    dispatch.wake()
    assert dispatch.due() == math.inf
    assert dispatch.ask(5.0) is None


def test_a_stopped_one_asks_no_more_once_all_is_stored():
    """After a stop no exchange is due for free slots alone, nor for a wake."""
    dispatch = Dispatch(2, poll_interval=1.0)
    dispatch.stop()
    dispatch.wake()
    assert dispatch.due() == math.inf
    assert dispatch.ask(5.0) is None


def test_a_stop_stores_at_once_what_a_failure_put_off():
    """What finished doesn't wait out the pause after a failed exchange when the runner stops."""
    dispatch = Dispatch(1, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1))
    dispatch.deliver(done(claim(1)))
    dispatch.failed(dispatch.ask(0.0), now=0.0, jitter=1.0)
    assert dispatch.ask(0.0) is None
    dispatch.stop()
    assert [each.token for each in dispatch.ask(0.0).outcomes] == ["token1"]


def test_a_failed_look_for_work_is_made_again_after_its_pause():
    """A failed exchange is tried again after its pause, not after the poll interval."""
    dispatch = Dispatch(1, poll_interval=1000.0)
    answered(dispatch, 0.0)
    dispatch.wake()
    ask = dispatch.ask(1.0)
    pause = dispatch.failed(ask, now=2.0, jitter=0.5)
    assert dispatch.due() == 2.0 + pause


def test_each_failure_in_a_row_doubles_the_pause_until_one_succeeds():
    """Failures are counted one by one, and an exchange that was made ends the row."""
    dispatch = Dispatch(1, poll_interval=1.0)
    row = [dispatch.failed(dispatch.ask(now), now=now, jitter=0.5) for now in (0.0, 100.0, 200.0)]
    assert row == [backoff(failures, 0.5) for failures in range(3)]
    answered(dispatch, 300.0)
    assert dispatch.failed(dispatch.ask(400.0), now=400.0, jitter=0.5) == row[0]


def test_pauses_grow_to_a_bound_with_jitter():
    """From 25 ms to five seconds, never more, never nothing."""
    pauses = [backoff(failures, 1.0) for failures in range(2000)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    assert backoff(0, 0.0) > 0


def test_an_outcome_that_nobody_waits_for_is_dropped():
    """A second outcome of one token, or one after a put-back, is not taken."""
    dispatch = Dispatch(1, poll_interval=1.0)
    answered(dispatch, 0.0, claim(1))
    assert [flight.claim.token for flight in dispatch.abandon()] == ["token1"]
    assert not dispatch.deliver(done(claim(1)))
    assert [each.kind for each in dispatch.ask(0.0).outcomes] == ["put_back"]
    assert not dispatch.deliver(done(claim(9)))


def test_claims_that_come_after_a_stop_are_put_back():
    """An exchange under way when close began hands out nothing (property 1 of the design)."""
    dispatch = Dispatch(2, poll_interval=1.0)
    ask = dispatch.ask(0.0)
    dispatch.stop()
    landed, claimed = dispatch.answer(ask, Exchange(claims=[claim(1)]), now=0.0, ready_in=None)
    assert (landed, claimed) == ([], [])
    ask = dispatch.ask(0.0)
    assert ask.want == 0
    assert [(each.kind, each.token) for each in ask.outcomes] == [("put_back", "token1")]


class DispatchMachine(RuleBasedStateMachine):
    """However calls come, no claim is lost and no slot is used twice."""

    def __init__(self):
        super().__init__()
        self.dispatch = Dispatch(4, poll_interval=1.0)
        self.number = 0
        self.now = 0.0
        self.asked = None
        self.fetching: list[Claim] = []
        self.stored: list[str] = []
        self.delivered: list[str] = []

    @rule(seconds=st.floats(0, 10))
    def move_clock(self, seconds):
        self.now += seconds

    @precondition(lambda self: self.asked is None)
    @rule()
    def ask(self):
        self.asked = self.dispatch.ask(self.now)

    @precondition(lambda self: self.asked is not None)
    @rule(data=st.data())
    def answer(self, data):
        count = data.draw(st.integers(0, self.asked.want))
        claims = [claim(self.number + each) for each in range(count)]
        self.number += count
        landed, claimed = self.dispatch.answer(
            self.asked, Exchange(claims=claims), now=self.now, ready_in=None
        )
        self.stored += [each.outcome.token for each in landed]
        self.fetching += [flight.claim for flight in claimed]
        self.asked = None

    @precondition(lambda self: self.asked is not None)
    @rule()
    def fail(self):
        self.dispatch.failed(self.asked, now=self.now, jitter=0.3)
        self.asked = None

    @precondition(lambda self: self.fetching)
    @rule(data=st.data())
    def deliver(self, data):
        ended = self.fetching.pop(data.draw(st.integers(0, len(self.fetching) - 1)))
        assert self.dispatch.deliver(done(ended))
        self.delivered.append(ended.token)

    @rule()
    def wake(self):
        self.dispatch.wake()

    @invariant()
    def slots_add_up(self):
        assert self.dispatch.busy == len(self.fetching)
        assert 0 <= self.dispatch.free <= 4

    @invariant()
    def nothing_is_lost_or_stored_twice(self):
        assert self.stored == self.delivered[: len(self.stored)]
        waiting = set(self.delivered) - set(self.stored)
        held = {each.token for each in self.fetching}
        assert set(self.dispatch.tokens()) == waiting | held

    @invariant()
    def work_is_never_forgotten(self):
        if self.asked is None and (self.dispatch.unstored or self.dispatch.free):
            assert self.dispatch.due() < math.inf


DispatchMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestDispatchMachine = DispatchMachine.TestCase
