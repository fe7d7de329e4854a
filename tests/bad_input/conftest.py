from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.bad_input.worlds import World, Worlds


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """What makes worlds, its file migrated and filled once."""
    return Worlds(tmp_path_factory.mktemp("worlds"))


@pytest.fixture
def open_world(worlds: Worlds) -> Iterator[Callable[[str], World]]:
    """Opens a fresh world of a kind of store; all are closed after the test."""
    opened: list[World] = []

    def open_one(kind: str) -> World:
        opened.append(worlds.open(kind))
        return opened[-1]

    yield open_one
    for world in opened:
        world.close()
