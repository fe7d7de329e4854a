"""What the machine draws: odd clocks, odd texts, few names, so that calls meet each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from batchmill.records import JobStatus, Limits, TargetStatus

T = 1_000_000
"""The unix second that every example begins at."""


def mostly(usual: list[Any], odd: list[Any], times: int = 4) -> st.SearchStrategy[Any]:
    """A usual value ``times`` as often as an odd one: else nothing would ever get far."""
    return st.sampled_from(usual * (times * len(odd)) + odd * len(usual))


CALLERS = st.sampled_from(["ada", "bob"])
KEYS = st.sampled_from(["k", "K", "é", ""])
QUEUES = mostly(["default"], ["other"])
RUNNERS = mostly(["r1"], ["r2"], 2)
HOMES = mostly([None], ["r1", "r2"], 2)
PICKS = st.integers(0, 30)
LIMITS = st.sampled_from([None, None, None, 0, 1, 2, 30])
BUDGETS = mostly([2**40, 2**63 - 1], [0, 1, 10, 100, 1000], 2)
WIDE = Limits(99, 99, 99)
CAPS = mostly([WIDE], [Limits(2, 99, 99), Limits(99, 2, 99), Limits(99, 99, 3)])
JOB_STATUSES = st.sampled_from(list(JobStatus))
TARGET_STATUSES = st.sampled_from(list(TargetStatus))
HOLDS = mostly([60], [0.5, 1.25, 10, 3600, 10**9, 0.0001], 1)
TTLS = mostly(
    [timedelta(hours=1), timedelta.max],
    [timedelta(0), timedelta(seconds=9, microseconds=1), timedelta(seconds=10)],
    3,
)


class Moment(NamedTuple):
    """When a step happens: a move of the machine's clock, or (``jump``) a time of its own."""

    seconds: float
    jump: bool = False


SMALL = [0, 0, 0.001, 0.5, 1, 1.999]
LARGE = [9.75, 59.999, 60, 61, 3600, 86_400, -0.25, -1, -60, -3601]
JUMPS = [T, T, 0, -1, 0.999, -0.001, 2**31, 2**31 + 0.5, 253_402_300_799, 10**12, -1e12]
MOMENTS = mostly(
    [Moment(seconds) for seconds in SMALL],
    [Moment(seconds) for seconds in LARGE]
    + [Moment(seconds, jump=True) for seconds in JUMPS]
    + [Moment(seconds, jump=True) for seconds in [T] * len(JUMPS)],
)

GOOD_TEXTS = ["", "x", "é", "😀", '{"a":"\\u0000"}', "tab\tand ' % :x ?", "\uffff", "é😀" * 500]
TEXTS = st.one_of(
    st.sampled_from(GOOD_TEXTS),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6),
)
ODD_TEXTS = st.one_of(TEXTS, mostly(GOOD_TEXTS, ["a\x00b", "\ud83d", "\x00"]))
OPTIONAL_TEXTS = st.none() | TEXTS


class Draft(NamedTuple):
    """An outcome before it has a claim: ``bent`` says what of it is wrong, "" nothing."""

    which: int
    stale: bool
    bent: str
    kind: str
    text: str
    hint: str | None
    ready_in: float | None


AGAIN = st.sampled_from(["later", "put_back", "later", "done"])
DRAFTS = st.builds(
    Draft,
    which=PICKS,
    stale=mostly([False], [True]),
    bent=mostly([""], ["idx", "job", "token"]),
    kind=mostly(["done", "failed", "later", "put_back"], ["fail_job"], 2),
    text=ODD_TEXTS,
    hint=st.none() | ODD_TEXTS,
    ready_in=mostly([None, 0, 0.5, 2], [100, -5, 10**9, -(10**9)]),
)


class TargetDraft(NamedTuple):
    """A target of a job made by hand."""

    idx: int
    status: TargetStatus
    url: str
    result: str | None
    error: str | None


TARGET_DRAFTS = st.builds(
    TargetDraft,
    idx=st.sampled_from([0, 1, 2, 3, 4, 2**31 - 1]),
    status=TARGET_STATUSES,
    url=ODD_TEXTS,
    result=OPTIONAL_TEXTS,
    error=OPTIONAL_TEXTS,
)


class Offer(NamedTuple):
    """A job to submit; ``own_key``: its key is its id, else ``key``."""

    pick: int
    targets: int
    caller: str
    key: str
    own_key: bool
    url: str
    queue: str
    home: str | None


OFFERS = st.builds(
    Offer,
    pick=PICKS,
    targets=mostly([1, 2, 3, 4], [0]),
    caller=CALLERS,
    key=KEYS,
    own_key=mostly([True], [False], 2),
    url=ODD_TEXTS,
    queue=QUEUES,
    home=HOMES,
)
