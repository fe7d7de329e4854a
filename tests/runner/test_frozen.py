"""batchmill's own dataclasses behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys

import pytest

from batchmill import frozen, records
from batchmill.runner import Hooks, Options, Result, RunnerConfig, Target, TargetReport

ONES = [
    records.BatchJob("job", "caller", "class", "key"),
    records.BatchTarget("job", 3, "url", status=records.TargetStatus.DONE, result="{}"),
    records.Claim("job", 3, "token", 1, None, "caller", "class", "url", "{}"),
    records.Outcome("job", 3, "token", "later", ready_at=1.5),
    records.Exchange(),
    Result("text"),
    Target("url", {"a": 1}),
    TargetReport(0, "url", {}, records.TargetStatus.DONE, Result(1), "", ""),
    Options(mode="m"),
    RunnerConfig(workers=2),
    Hooks(),
]


@pytest.mark.parametrize("one", ONES, ids=lambda one: type(one).__name__)
def test_a_record_is_frozen_and_has_slots(one):
    """No field can be changed or deleted, and there is no room for another attribute."""
    for name in (dataclasses.fields(one)[0].name, "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(one, name)
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("one", ONES, ids=lambda one: type(one).__name__)
def test_the_librarys_functions_take_a_record(one):
    """fields, replace and asdict; copy and pickle; each gives an equal one of the same class."""
    names = [each.name for each in dataclasses.fields(one)]
    assert names == list(type(one).__slots__) == list(dataclasses.asdict(one))
    for other in (
        dataclasses.replace(one),
        frozen.replace(one),
        one.__replace__(),  # what copy.replace of Python 3.13 calls
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one)),
    ):
        assert type(other) is type(one)
        assert other == one
        assert other is not one


def _twins():
    """The same class by the library and by us."""

    def define(dataclass, field):
        @dataclass(frozen=True, slots=True)
        class Sample:
            first: int
            second: str = "two"
            third: list[int] = field(default_factory=list)

            def __post_init__(self) -> None:
                if self.first < 0:
                    raise ValueError("first")

        return Sample

    return [
        define(dataclasses.dataclass, dataclasses.field),
        define(frozen.dataclass, frozen.field),
    ]


def test_a_class_is_made_as_by_the_library():
    """Signature, defaults made anew, representation, comparison, hash and matching."""
    theirs, ours = _twins()
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert repr(ours(1)) == repr(theirs(1))
    assert ours.__match_args__ == theirs.__match_args__ == ours.__slots__
    assert ours(1) == ours(1, "two", []) != ours(2)
    assert ours(1) != theirs(1)
    assert ours(1).third is not ours(1).third
    assert hash(ours(1, "", ())) == hash(theirs(1, "", ()))
    for kind in (theirs, ours):
        with pytest.raises(TypeError, match="unhashable"):
            hash(kind(1))
        with pytest.raises(TypeError, match="first"):
            kind()
        with pytest.raises(ValueError, match="first"):
            kind(-1)


def test_a_subclass_works_as_of_the_librarys():
    """With a dict of its own, or a dataclass of the library's with one field more."""

    class Plain(Result):
        pass

    plain = Plain("text")
    plain.more = 1
    assert (plain.content, plain.meta, plain.more) == ("text", {}, 1)
    assert plain != Result("text")
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.content = ""

    @dataclasses.dataclass(frozen=True)
    class Longer(Result):
        more: int = 2

    assert dataclasses.astuple(Longer("text")) == ("text", {}, 2)


def test_a_record_that_holds_itself_can_be_shown():
    """As the library's: three dots."""
    held: list[object] = []
    held.append(Result(held))
    assert "..." in repr(held[0])


def test_the_runner_is_imported_without_the_library():
    """It takes long, and nothing needs it."""
    script = "import batchmill.runner, sys; print('dataclasses' in sys.modules)"
    asked = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert asked.stdout.strip() == "False"
