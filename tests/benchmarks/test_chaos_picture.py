"""docs/chaos.svg is drawn of docs/chaos.json."""

from __future__ import annotations

import json

import pytest

from benchmarks.chaos import DATA, PICTURE, picture

pytestmark = pytest.mark.checkout


def test_the_picture_shows_the_kept_run() -> None:
    """Neither was changed without the other, nor how it is drawn."""
    runs = json.loads(DATA.read_text(encoding="utf-8"))
    assert picture(runs) == PICTURE.read_text(encoding="utf-8")
