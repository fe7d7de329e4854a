"""A broken store: the name of its fault, how to make it, and where it ought to be caught."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Make = Callable[[Path], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Broken:
    """A store with one fault; ``parts`` are the classes of the contract that are tried first."""

    fault: str
    make: Make
    parts: tuple[str, ...]


def in_memory(fault: str, store: type[Any], *parts: str) -> Broken:
    """A subclass of MemoryStore with a fault."""
    return Broken(fault, lambda _: nullcontext(store()), parts)
