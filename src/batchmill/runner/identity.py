"""Who a runner is to its store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from batchmill.validation import ID_LENGTH

_SUFFIX_BYTES: Final = 8
_LABEL_LENGTH: Final = ID_LENGTH - 1 - 2 * _SUFFIX_BYTES


@dataclass(frozen=True, slots=True)
class Identity:
    """``id`` is the only one of its kind; a ``shared`` runner takes the jobs of others too."""

    id: str
    queue: str
    shared: bool


def new_identity(label: str, *, queue: str, shared: bool) -> Identity:
    """A label for people, cut to 47 characters, and 64 random bits from the system."""
    suffix = os.urandom(_SUFFIX_BYTES).hex()
    return Identity(f"{label[:_LABEL_LENGTH]}-{suffix}", queue, shared)
