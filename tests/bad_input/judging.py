"""Whether a call ended as documented."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.bad_input.calls import answer_of, changed, documented, fits, good
from tests.bad_input.rules import STORED, TAKEN
from tests.bad_input.rules import UNKNOWN as NOTHING_HAS_IT
from tests.bad_input.stores import UNKNOWN, Table
from tests.bad_input.values import KINDS
from tests.bad_input.worlds import STORES, World, contents, plain

Open = Callable[[str], World]
Find = Callable[[World, str], Any]
"""From a world and a method's name to the method."""


def expected(table: Table, method: str, name: str, kind: str) -> str:
    """The documented outcome of a kind of value."""
    outcome = table[method][name].of(kind)
    if outcome == NOTHING_HAS_IT:
        outcome = UNKNOWN.get(f"{method}.{name}") or UNKNOWN[method]
    return outcome


def problems(
    open_world: Open,
    find: Find,
    table: Table,
    method: str,
    name: str,
    stores: Sequence[str] = STORES,
    *,
    rejected: bool = True,
) -> list[str]:
    """Give the argument each value on each store; what ended otherwise than documented.

    Without ``rejected`` only those values that reach the database.
    """
    worlds = {store: open_world(store) for store in stores}
    wrong: list[str] = []
    for kind, values in KINDS.items():
        outcome = expected(table, method, name, kind)
        if not (rejected or reaches_the_store(outcome)):
            continue
        for value in values:
            ends = {}
            for store, world in worlds.items():
                function = find(world, method)
                problem, ends[store] = judge(world, function, method, name, value, outcome)
                if problem:
                    wrong.append(f"{kind} on {store}: {problem}, not: {outcome}")
            if name != "within" and any(end != ends[stores[0]] for end in ends.values()):
                wrong.append(f"{kind}: the stores differ: {_differences(ends)}")
            if outcome in {TAKEN, "lost"} or outcome.startswith(STORED):
                worlds = {store: open_world(store) for store in stores}
    return wrong


def reaches_the_store(outcome: str) -> bool:
    """Whether a value of this outcome is not rejected before anything is asked of the store."""
    return (
        outcome in {TAKEN, "lost", "refused"}
        or outcome.startswith((STORED, "answers "))
        or re.match(r"(?!InvalidInput)[A-Z]\w+: ", outcome) is not None
    )


def judge(
    world: World, function: Any, method: str, name: str, value: Any, outcome: str
) -> tuple[str, Any]:
    """Make the call; what is wrong about its end ("" for nothing), and what there is to compare."""
    arguments = changed(good(world)[method], name, value)
    before, stats = world.rows(), world.store.stats()
    on_runner = world.runner is not None  # which looks for the job first
    text, answer = answer_of(lambda: function(**arguments))
    if method == "subscribe":
        answer = None  # a push, where the database has one
    if outcome == TAKEN:
        return ("" if text == TAKEN else text), (plain(answer), contents(world.store))
    if outcome.startswith(STORED):
        (target,) = world.store.get_targets("live", start=1, limit=1)
        stored = f"{STORED}{target.error}" if text == TAKEN else text
        good_end = fits(stored, outcome) and list(answer.unstorable) == [world.claim.token]
        return ("" if good_end else stored), (plain(answer), contents(world.store))
    if outcome.startswith("answers "):
        same_end = text == TAKEN and f"answers {plain(answer)}" == outcome
    elif outcome in {"refused", "lost"}:
        same_end = text == TAKEN and len(getattr(answer, outcome)) == 1
    else:
        same_end = fits(text, documented(outcome, name))
        same_end = same_end and (
            "JobNotFound" in outcome or on_runner or world.store.stats() == stats
        )
    if outcome != "lost" and world.rows() != before:
        text += " (and the store changed)"
        same_end = False
    return ("" if same_end else f"{text} -> {plain(answer)}"), text


def _differences(ends: dict[str, Any]) -> str:
    """How the ends of the stores differ, from where they do."""
    texts = [str(end) for end in ends.values()]
    pairs = enumerate(zip(*texts, strict=False))
    at = next((place for place, letters in pairs if len(set(letters)) > 1), min(map(len, texts)))
    return " / ".join(text[max(at - 60, 0) : at + 80] for text in texts)
