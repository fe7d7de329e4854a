"""The kinds of value that every argument of every public function is given."""

from __future__ import annotations

import enum
import math
from datetime import timedelta
from typing import Any, Final

SECRET: Final = "hunter2"
"""Part of every odd text: no error may repeat it."""


class Word(str, enum.Enum):  # noqa: UP042 - it is another kind of str: str() of it isn't its text
    """A text that is an enum's member: the same as its plain text."""

    ONE = f"word-{SECRET}"


class Thing:
    """Something of no type that anything takes."""

    def __repr__(self) -> str:
        return SECRET


KINDS: Final[dict[str, list[Any]]] = {
    "None": [None],
    "another type": [Thing(), SECRET.encode()],
    "a list": [[SECRET]],
    "a mapping": [{SECRET: SECRET}],
    "True or False": [True, False],
    "0": [0],
    "a whole number": [7],
    "a fraction": [7.5],
    "negative": [-1],
    "NaN": [math.nan],
    "infinity": [math.inf, -math.inf],
    "huge": [10**30, -(10**30)],
    "empty": [""],
    "a text": [SECRET],
    "a str enum": [Word.ONE],
    "too long": [SECRET * 60],
    "NUL": [f"{SECRET}\x00"],
    "lone surrogate": [f"{SECRET}\ud83d"],
    "a timedelta": [timedelta(hours=3)],
    "a negative timedelta": [-timedelta(microseconds=1), timedelta.min],
    "a huge timedelta": [timedelta.max],
}
"""``too long`` has 420 characters; ``huge`` is past every limit, a negative one among them."""

MEANING: Final[dict[str, str]] = {
    "another type": "an object of a class of its own; bytes",
    "a list": "a list of one text",
    "a mapping": "a dict of one text",
    "0": "the int",
    "a whole number": "7",
    "a fraction": "7.5",
    "negative": "-1",
    "infinity": "both signs",
    "huge": "an int of 31 digits, both signs",
    "empty": "an empty text",
    "a text": "some word: for an id, one that nothing has",
    "a str enum": "a member of a class that is a str and an Enum: as good as its text",
    "too long": "420 characters",
    "NUL": "a text with a NUL character",
    "lone surrogate": "a text with half of a surrogate pair, which has no UTF-8",
    "a timedelta": "three hours",
    "a negative timedelta": "one microsecond less than nothing; timedelta.min",
    "a huge timedelta": "timedelta.max",
}
