"""A quicker ``__init__`` for the frozen dataclasses that are made for each target.

The library's calls ``object.__setattr__`` for each field: measured, 1.0 µs for eight of them, and a
target that is read back takes three such objects.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

_MADE: Final = object()
"""In place of an argument that isn't given, and made anew for each instance."""


def quick(cls: type[_T]) -> type[_T]:
    """A frozen dataclass with slots, otherwise as it was, whose ``__init__`` takes a third.

    As long as that runs, the instance is of a class with the same slots that isn't frozen. One of a
    subclass, which may have other slots, is set field by field.
    """
    each: Any = cls
    known, library = fields(each), each.__init__
    scope = {
        "cls": each,
        "opened": type(cls.__name__, (), {"__slots__": each.__slots__}),
        "change": object.__setattr__,
        "MADE": _MADE,
        **{f"default_{field.name}": _default(field) for field in known},
        **{f"make_{field.name}": field.default_factory for field in known},
    }
    source = _source(known, checked=hasattr(cls, "__post_init__"))
    exec(source, scope)  # noqa: S102 - made of our own fields' names
    init: Any = scope["__init__"]
    init.__qualname__, init.__annotations__ = library.__qualname__, library.__annotations__
    each.__init__ = init
    return cls


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else _MADE


def _source(known: tuple[Field[Any], ...], *, checked: bool) -> str:
    names = [field.name for field in known]
    taken = [
        field.name if _default(field) is MISSING else f"{field.name}=default_{field.name}"
        for field in known
    ]
    made = [field.name for field in known if _default(field) is _MADE]
    lines = [
        f"def __init__({', '.join(['self', *taken])}):",
        *(f"    if {name} is MADE: {name} = make_{name}()" for name in made),
        "    if type(self) is cls:",
        "        change(self, '__class__', opened)",
        *(f"        self.{name} = {name}" for name in names),
        "        self.__class__ = cls",
        "    else:",
        *(f"        change(self, '{name}', {name})" for name in names),
        *(["    self.__post_init__()"] if checked else []),
    ]
    return "\n".join(lines)
