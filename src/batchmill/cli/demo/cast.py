"""Who takes part in the demo, and what each of them submits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Person:
    """A caller: name, colour, and the documents of one job."""

    name: str
    colour: str
    documents: tuple[str, ...]

    @property
    def letter(self) -> str:
        """What stands for the caller in the row of turns."""
        return self.name[0]


ADA: Final = Person(
    "ada",
    "bright_cyan",
    (
        "README.md",
        "LICENSE",
        "busy/records.py",
        "slow/protocol.py",
        "no-such-page.html",
        "errors.py",
        "config.py",
        "models.py",
    ),
)
BEN: Final = Person(
    "ben",
    "bright_magenta",
    ("LICENSE", "broken/engine.py", "validation.py", "slow/targets.py", "README.md", "records.py"),
)
CLEO: Final = Person(
    "cleo",
    "bright_yellow",
    ("errors.py", "slow/models.py", "protocol.py", "config.py", "LICENSE", "README.md"),
)
CAST: Final = (ADA, BEN, CLEO)

CANCEL_AFTER: Final = 2
"""Cleo cancels once so many of her targets have had their turn."""
REPLAY_AT: Final = 2
"""Ada submits the same list again when this one of her targets starts."""
