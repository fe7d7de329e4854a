"""Dataclasses with slots, quicker to make and to import than those of the standard library.

The same decorator with fewer options: for a type checker they are the library's, and its
``fields``, ``replace`` and ``asdict`` take them. Two things differ.

A frozen dataclass of the library sets each field by a call of ``object.__setattr__``: measured,
1.2 µs for eight fields, and a target that is read back takes three such objects. Here an instance
is of a class with the same slots that isn't frozen, as long as ``__init__`` runs.

The library compiles six functions for each class and imports ``inspect``: measured, a third of an
import of ``batchmill.runner``. Here one function is compiled, and the library is asked when
somebody wants to know the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final, TypeVar

_T = TypeVar("_T")

_set: Final = object.__setattr__


class _Made:
    """A default that is made anew for each instance."""

    def __init__(self, *, default_factory: Callable[[], Any]) -> None:
        self.default_factory = default_factory


def _dataclass(**kind: bool) -> Callable[[type[_T]], type[_T]]:
    """As the library's, for a class without bases, and always with slots.

    Beside ``slots`` it takes ``frozen``, ``eq``, ``init`` and ``kw_only``.
    """
    return lambda cls: _decorated(cls, kind)


def _decorated(cls: type[_T], kind: Mapping[str, bool]) -> type[_T]:
    """The class anew, since slots can't be given to one that is made."""
    names, frozen = tuple(cls.__annotations__), kind.get("frozen", False)
    space = {k: v for k, v in vars(cls).items() if k not in {"__dict__", "__weakref__"}}
    defaults = {name: space.pop(name) for name in names if name in space}
    asked = {name: _Asked(name, space, kind, defaults) for name in _ASKED}
    space |= {"__slots__": names, "__match_args__": () if kind.get("kw_only") else names, **asked}
    space |= {
        "__qualname__": cls.__qualname__,
        "__repr__": _repr_of(names),
        "__replace__": _replace,
    }
    if kind.get("eq", True):
        space |= _comparing(names, hashed=frozen)
    if frozen:
        space |= {**_refusing(names), **_copying(names)}
    made: Any = type(cls.__name__, (), space)
    if kind.get("init", True):
        made.__init__ = _init_of(made, kind, defaults)
    return made  # type: ignore[no-any-return]


def _init_of(cls: Any, kind: Mapping[str, bool], defaults: Mapping[str, Any]) -> Any:
    """``__init__``, the one function that has to be compiled for each class.

    A subclass has other slots, so that an instance of one is set field by field.
    """
    names: tuple[str, ...] = cls.__slots__
    scope = {f"_default_{name}": default for name, default in defaults.items()}
    scope |= {"_set": _set, "_cls": cls, "_open": type(cls.__name__, (), {"__slots__": names})}
    taken = [f"{name}=_default_{name}" if name in defaults else name for name in names]
    makes = [name for name in names if isinstance(defaults.get(name), _Made)]
    body = [f"if {n} is _default_{n}: {n} = _default_{n}.default_factory()" for n in makes]
    stores = [f"self.{name} = {name}" for name in names]
    if kind.get("frozen"):
        quick = ["_set(self, '__class__', _open)", *stores, "self.__class__ = _cls"]
        slow = [f"_set(self, {name!r}, {name})" for name in names]
        stores = ["if type(self) is _cls:", *_indented(quick), "else:", *_indented(slow)]
    body += stores
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = f"def __init__({', '.join(['self', '*'][: 1 + kind.get('kw_only', False)] + taken)}):"
    exec("\n".join([head, *_indented(body)]), scope)  # noqa: S102 - names of our own fields
    init: Any = scope["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {**cls.__annotations__, "return": None}
    return init


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _repr_of(names: tuple[str, ...]) -> Any:
    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return shown


def _comparing(names: tuple[str, ...], *, hashed: bool) -> dict[str, Any]:
    values = attrgetter(*names)

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def hash_of(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equal, "__hash__": hash_of if hashed else None}


def _copying(names: tuple[str, ...]) -> dict[str, Any]:
    """What ``copy`` and ``pickle`` need, since nobody can set the attributes."""

    def state_of(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    return {"__getstate__": state_of, "__setstate__": restore}


def _refusing(names: tuple[str, ...]) -> dict[str, Any]:
    """Frozen are the fields; a subclass without slots may have other attributes."""

    def check(self: object, name: str) -> None:
        if name in names or not hasattr(self, "__dict__"):
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"{type(self).__name__} is frozen: {name} can't be changed")

    def change(self: object, name: str, value: object) -> None:
        check(self, name)
        _set(self, name, value)

    def remove(self: object, name: str) -> None:
        check(self, name)
        object.__delattr__(self, name)

    return {"__setattr__": change, "__delattr__": remove}


class _Asked:
    """What the library keeps on a dataclass: taken from a twin of its own make, once asked for."""

    def __init__(
        self,
        name: str,
        space: Mapping[str, Any],
        kind: Mapping[str, bool],
        defaults: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._kept = {key: space[key] for key in ("__module__", "__annotations__")}
        self._kind = kind
        self._defaults = defaults

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        given = {
            name: dataclasses.field(default_factory=default.default_factory)
            if isinstance(default, _Made)
            else default
            for name, default in self._defaults.items()
        }
        twin: Any = type(owner.__name__, (), {**self._kept, **given})
        return getattr(dataclasses.dataclass(**self._kind)(twin), self._name)


_ASKED: Final = ("__dataclass_fields__", "__dataclass_params__")


def _replace(instance: _T, /, **changes: Any) -> _T:
    """Another one of the same class, with these fields changed."""
    cls: Any = type(instance)
    return cls(**{name: getattr(instance, name) for name in cls.__slots__} | changes)  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _dataclass, _Made, _replace

__all__ = ["dataclass", "field", "replace"]
