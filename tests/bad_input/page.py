"""Writes docs/bad-input.md from the tests' table: ``python -m tests.bad_input.page``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bad_input.rules import STORED, TAKEN, Rule
from tests.bad_input.rules import UNKNOWN as NOTHING_HAS_IT
from tests.bad_input.runners import DATABASE, FETCH, OBJECTS, RUNNER
from tests.bad_input.stores import JOB_STORE, REPOSITORY, UNKNOWN, Table
from tests.bad_input.values import KINDS, MEANING

PAGE: Final = Path(__file__).parents[2] / "docs" / "bad-input.md"

GROUPS: Final[dict[str, Table]] = {
    "A store: jobs and targets": REPOSITORY,
    "A store: what a runner asks": JOB_STORE,
    "A runner": RUNNER,
    "What an application makes": OBJECTS,
    "Engines and migrations": DATABASE,
    "What a fetch returns": FETCH,
}
_OR_NONE: Final = ", or None"

_INTRO: Final = """\
# Bad input

<!-- Written by `python -m tests.bad_input.page` from the table in tests/bad_input. -->

Every argument of every public function is checked before anything is written. What can't be used
is `InvalidInput`, which is a `ValueError` too. Its text begins with the argument's name, then says
what is wrong and what to do. It never repeats the value, which may be a secret.

- It is the same text on every store: in memory, on a SQLite file, on SQLite in memory, on
  PostgreSQL and on MariaDB.
- A call that is rejected changes nothing in the store.
- A number is an int or a float: True and False are none, and neither is text with digits in it.
- A text that is a member of an enum (or of another subclass of `str`) counts as its plain text.
- `within` of a submit is the one difference: a `MemoryStore` has no transaction to join, and
  refuses whatever is given.
- What a *fetch* brings is no argument: a target whose result can't be stored is stored as failed,
  with the reason as its error, and its siblings go on.

The three parts below are: the values that are tried, what each kind of argument makes of them, and
the arguments of each function. `…` stands for what differs, the type of the value mostly.
"""


_PLAIN: Final = """\
Some take what they are named after, and answer every value above with the same text:

| kind | takes | outcome of anything else |
|---|---|---|"""

_NOTHING: Final = """\
*Nothing has it*: what comes of an id, a name, a token or an index that might be right and isn't.
"""


def render() -> str:
    """The whole page."""
    plain, mixed = [], []
    for rule in sorted(rules().values(), key=lambda rule: rule.name):
        (mixed if rule.outcomes else plain).append(rule)
    parts = [_INTRO, "## The values\n", _values(), "## Kinds of argument\n", _PLAIN]
    parts += [f"| {rule.name} | {rule.meaning} | {_in_words(rule.otherwise)} |" for rule in plain]
    parts += ["\nThe others:\n", *map(_section, mixed), "## Functions\n", _NOTHING]
    parts += [f"### {title}\n\n{_functions(table)}" for title, table in GROUPS.items()]
    return "\n".join(parts)


def rules() -> dict[str, Rule]:
    """Every kind of argument by its name, but for those that only take None as well."""
    found: dict[str, Rule] = {}
    everywhere = (
        rule for table in GROUPS.values() for each in table.values() for rule in each.values()
    )
    for rule in map(_without_none, everywhere):
        known = found.setdefault(rule.name, rule)
        assert known.outcomes == rule.outcomes, f"two kinds of argument: {rule.name}"
    return found


def _without_none(rule: Rule) -> Rule:
    if not rule.name.endswith(_OR_NONE):
        return rule
    outcomes = {kind: outcome for kind, outcome in rule.outcomes.items() if kind != "None"}
    name, meaning = rule.name.removesuffix(_OR_NONE), rule.meaning.removesuffix("; or None")
    return Rule(name, meaning, rule.otherwise, outcomes)


def _values() -> str:
    rows = [f"| {kind} | {MEANING.get(kind, 'as it says')} |" for kind in KINDS]
    return "\n".join(["| value | what is tried |", "|---|---|", *rows, ""])


def _section(rule: Rule) -> str:
    rows = [f"| {', '.join(kinds)} | {outcome} |" for outcome, kinds in _ends(rule).items()]
    head = f"### {rule.name}\n\n{rule.meaning[0].upper()}{rule.meaning[1:]}.\n"
    return "\n".join([head, "| given | outcome |", "|---|---|", *rows, ""])


def _ends(rule: Rule) -> dict[str, list[str]]:
    """The outcomes in words, each with the kinds of value that end in it."""
    ends: dict[str, list[str]] = {}
    for kind in KINDS:
        ends.setdefault(_in_words(rule.of(kind)), []).append(kind)
    most = _in_words(rule.otherwise)
    if len(ends.get(most, [])) > 3:
        ends[most] = ["anything else"]
        ends[most] = ends.pop(most)  # last
    return ends


def _in_words(outcome: str) -> str:
    if outcome in {TAKEN, NOTHING_HAS_IT}:
        return {TAKEN: "taken", NOTHING_HAS_IT: "nothing has it"}[outcome]
    if outcome.startswith(STORED):
        return f"{STORED}`{outcome.removeprefix(STORED)}`"
    whole = re.match(r"([A-Z]\w+): (.*)", outcome, re.DOTALL)
    return f"{whole[1]}: `{whole[2]}`" if whole else f"InvalidInput: `…: {outcome}`"


def _functions(table: Table) -> str:
    rows = ["| function | argument | takes | nothing has it |", "|---|---|---|---|"]
    for function, arguments in table.items():
        rows += list(_rows(function, arguments)) or [f"| `{function}` | none | | |"]
    return "\n".join([*rows, ""])


def _rows(function: str, arguments: dict[str, Rule]) -> Iterator[str]:
    for number, (name, rule) in enumerate(arguments.items()):
        first = f"`{function}`" if number == 0 else ""
        lacks = NOTHING_HAS_IT in rule.outcomes.values()
        end = UNKNOWN.get(f"{function}.{name}", UNKNOWN.get(function, "")) if lacks else ""
        yield f"| {first} | `{name}` | {rule.name} | {_quoted(end)} |"


def _quoted(end: str) -> str:
    return end.partition(":")[0]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
