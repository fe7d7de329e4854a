"""Every write of a repository: the rows that it starts from, and the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from batchmill.records import BatchTarget, Outcome
from tests.store.support import HOUR, done, exchange, finish, job, submit, targets

LATE = 100 + 3600
Call = Callable[[Any], Any]


@dataclass(frozen=True)
class Write:
    """``prepare(store)`` makes the rows and answers with the call; ``steps``: it commits often."""

    prepare: Callable[[Any], Call]
    steps: bool = False


def _nothing(call: Call) -> Write:
    return Write(lambda _store: call)


def _kept(store: Any) -> None:
    """A job by hand with a result, and one that is finished: what no write may touch."""
    store.create_job(job("kept", targets_total=2, lease=10**6))
    store.put_targets("kept", [BatchTarget("", 0, "u", "{}", "done", '"kept"'), *targets(2)[1:]])
    finish(store, "finished", '"é"', now=10**6)
    store.touch_job("finished", now=10**6)


def _by_hand(call: Call) -> Write:
    """On the job ``kept``, which is always there."""
    return Write(lambda _store: call)


def _submitted(call: Call, count: int = 2) -> Write:
    """On job a, which waits for its turn."""

    def prepare(store: Any) -> Call:
        submit(store, "a", count)
        return call

    return Write(prepare)


def _in_flight(call: Callable[[Any, Any], Any], count: int = 2, **given: Any) -> Write:
    """On job a, whose first target runner r holds; the call gets the claim too."""

    def prepare(store: Any) -> Call:
        submit(store, "a", count, **given)
        (claim,) = exchange(store).claims
        return lambda s: call(s, claim)

    return Write(prepare)


def _bringing(kind: str, count: int = 2, want: int = 1, **fields: Any) -> Write:
    """An exchange that brings one outcome of this kind."""

    def call(store: Any, claim: Any) -> Any:
        outcome = Outcome(claim.job_id, claim.idx, claim.token, kind, **fields)  # type: ignore[arg-type]
        return exchange(store, [outcome], want=want)

    return _in_flight(call, count)


def _many_in_flight(store: Any) -> Call:
    for name in ("a", "b", "c"):
        submit(store, name, 2)
    claims = exchange(store, want=3).claims
    return lambda s: exchange(s, [done(claim, '"result"') for claim in claims], want=3)


def _over_budget(store: Any) -> Call:
    for name in ("old-1", "old-2"):
        finish(store, name, '"x"')
    submit(store, "a", 2)
    (claim,) = exchange(store).claims
    return lambda s: exchange(s, [done(claim, '"long"')], max_bytes=20)


def _finished_jobs(count: int, call: Call) -> Callable[[Any], Call]:
    def prepare(store: Any) -> Call:
        with store.engine.begin() as connection:
            bound = store.bound_to(connection)
            for number in range(count):
                bound.create_job(job(f"old-{number:02}", status="done", targets_total=1))
                row = BatchTarget("", 0, "u", "{}", "done", '"x"')
                bound.put_targets(f"old-{number:02}", [row])
        return call

    return prepare


def _cancelled_in_flight(store: Any) -> Call:
    submit(store, "a", 2)
    exchange(store)
    store.cancel_job("a", now=100)
    return releasing


def _lost_home(store: Any) -> Call:
    submit(store, "a", 2, home="r")
    return releasing


def releasing(store: Any, max_attempts: int = 3) -> Any:
    """When every hold has lapsed."""
    return store.release_lost(now=LATE, hold_for=60, max_attempts=max_attempts, limit=10)


def _updating(job_id: str, idx: int, **given: Any) -> Call:
    return lambda s: s.update_target(job_id, idx, now=200, **given)


WRITES: dict[str, Write] = {
    "create_job": _nothing(lambda s: s.create_job(job("new", nbytes=5))),
    "get_job and touch": _by_hand(lambda s: s.get_job("kept", touch_at=2 * 10**6)),
    "touch_job": _by_hand(lambda s: s.touch_job("kept", now=2 * 10**6)),
    "put_targets": _by_hand(
        lambda s: s.put_targets("kept", [BatchTarget("", 2, "u", "{}", "done", '"x"')])
    ),
    "update_target of a job by hand": _by_hand(
        _updating("kept", 1, status="done", result='"more"')
    ),
    "update_target again": _by_hand(_updating("kept", 0, status="failed", error="no")),
    "update_target of a submitted job": _submitted(_updating("a", 0, status="done", result="1")),
    "update_target that settles": _submitted(_updating("a", 0, status="failed"), count=1),
    "set_job_status": _submitted(lambda s: s.set_job_status("a", "failed", now=200, error="no")),
    "cancel_job": _submitted(lambda s: s.cancel_job("a", now=200)),
    "cancel_job in flight": _in_flight(lambda s, _claim: s.cancel_job("a", now=200)),
    "mark_in_flight_failed": _in_flight(lambda s, _: s.mark_in_flight_failed("why", now=200)),
    "delete_job": _in_flight(lambda s, _claim: s.delete_job("a")),
    "submit_job": _nothing(lambda s: submit(s, "new", 3)),
    "submit_job with a home": _nothing(lambda s: submit(s, "new", 3, home="r")),
    "submit_job again": _submitted(lambda s: submit(s, "new", 2, idem_key="key-a", now=200)),
    "exchange that claims": _submitted(lambda s: exchange(s, want=2)),
    "exchange of a result": _bringing("done", result='"x"'),
    "exchange of a failure": _bringing("failed", error="no", hint="look"),
    "exchange of the last result": _bringing("done", count=1, result='"x"'),
    "exchange of a retry": _bringing("later", ready_at=500.0),
    "exchange of a put-back": _bringing("put_back"),
    "exchange that fails its job": _bringing("fail_job", error="no caller"),
    "exchange of three results": Write(_many_in_flight),
    "exchange over the budget": Write(_over_budget, steps=True),
    "hold": _in_flight(lambda s, claim: s.hold("r", [claim.token], now=120, hold_for=60)),
    "hold of a local runner": _in_flight(
        lambda s, claim: s.hold("r", [claim.token], now=120, hold_for=60), home="r"
    ),
    "leave": _in_flight(lambda s, _claim: s.leave("r"), home="r"),
    "release_lost": _in_flight(lambda s, _claim: releasing(s)),
    "release_lost for the last time": _in_flight(lambda s, _claim: releasing(s, 1)),
    "release_lost that settles": _in_flight(lambda s, _claim: releasing(s, 1), count=1),
    "release_lost of a cancelled job": Write(_cancelled_in_flight),
    "release_lost of a lost home": Write(_lost_home),
    "sweep": Write(_finished_jobs(1, lambda s: s.sweep(now=LATE, ttl=HOUR)), steps=True),
    "sweep in steps": Write(_finished_jobs(5, lambda s: s.sweep(now=LATE, ttl=HOUR)), steps=True),
    "evict_oldest": Write(_finished_jobs(1, lambda s: s.evict_oldest(max_bytes=10)), steps=True),
    "evict_oldest in steps": Write(
        _finished_jobs(5, lambda s: s.evict_oldest(max_bytes=14)), steps=True
    ),
}


def prepared(store: Any, name: str) -> Call:
    """Make the rows that a write starts from; the call."""
    _kept(store)
    return WRITES[name].prepare(store)
