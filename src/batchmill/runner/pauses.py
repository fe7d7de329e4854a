"""How long to leave a store alone that has just failed."""

from __future__ import annotations

import os
from typing import Final

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0
"""Both in seconds; each failure in a row doubles the pause between them."""


def backoff(failures: int, jitter: float) -> float:
    """Seconds to pause after so many failures before this one; ``jitter`` is from 0 to 1."""
    longest = min(FIRST_PAUSE * 2.0 ** min(failures, 16), LONGEST_PAUSE)
    return longest * (0.5 + jitter / 2)


def jitter() -> float:
    """A number from 0 to 1, so that runners that failed together don't come back together."""
    return int.from_bytes(os.urandom(2)) / 0xFFFF
