"""A frozen dataclass with a quicker ``__init__`` behaves as the standard library made it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle

import pytest

from batchmill import records
from batchmill.quick import quick
from batchmill.runner import Result, TargetReport

ONES = [
    records.BatchTarget("job", 3, "url", status=records.TargetStatus.DONE, result="{}"),
    records.Claim("job", 3, "token", 1, None, "caller", "class", "url", "{}"),
    records.Outcome("job", 3, "token", "later", ready_at=1.5),
    Result("text"),
    TargetReport(0, "url", {}, records.TargetStatus.DONE, Result(1), "", ""),
]


@pytest.mark.parametrize("one", ONES, ids=lambda one: type(one).__name__)
def test_a_record_is_frozen_and_has_slots(one):
    """No field can be changed or deleted, and there is no room for another attribute."""
    field = dataclasses.fields(one)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, field, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(one, field)
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("one", ONES, ids=lambda one: type(one).__name__)
def test_the_librarys_functions_take_a_record(one):
    """replace, copy and pickle give an equal one of the same class."""
    for other in (
        dataclasses.replace(one),
        copy.copy(one),
        copy.deepcopy(one),
        pickle.loads(pickle.dumps(one)),
    ):
        assert type(other) is type(one)
        assert other == one
        assert other is not one


def _twins():
    """The same class as it was, and with our ``__init__``."""

    def define(decorate):
        @decorate
        @dataclasses.dataclass(frozen=True, slots=True)
        class Sample:
            first: int
            second: str = "two"
            third: list[int] = dataclasses.field(default_factory=list)

            def __post_init__(self) -> None:
                if self.first < 0:
                    raise ValueError("first")

        return Sample

    return [define(lambda cls: cls), define(quick)]


def test_an_init_takes_what_the_librarys_takes():
    """Parameters, defaults, some of them made anew, and the check after it."""
    theirs, ours = _twins()
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert ours.__init__.__qualname__ == theirs.__init__.__qualname__
    for kind in (theirs, ours):
        assert dataclasses.astuple(kind(1)) == (1, "two", [])
        assert dataclasses.astuple(kind(third=[3], first=1)) == (1, "two", [3])
        assert kind(1).third is not kind(1).third
        with pytest.raises(TypeError, match="first"):
            kind()
        with pytest.raises(ValueError, match="first"):
            kind(-1)


def test_a_subclass_works_as_of_the_librarys():
    """A plain one, or a dataclass of the library's with one field more."""

    class Plain(Result):
        pass

    @dataclasses.dataclass(frozen=True)
    class Longer(Result):
        more: int = 2

    plain = Plain("text", {"a": 1})
    assert (type(plain), plain.content, plain.meta) == (Plain, "text", {"a": 1})
    assert plain != Result("text", {"a": 1})
    assert dataclasses.astuple(Longer("text")) == ("text", {}, 2)
