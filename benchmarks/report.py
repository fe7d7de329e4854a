"""What a run has measured: figures by subject, values by goal; medians, and JSON both ways."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS, Goal, Verdict, is_longest
from benchmarks.shape import FULL, Figures, Shape, Sizes

COLUMNS = ("submit", "drain", "read")


@dataclass(slots=True)
class Subject:
    """One row of the figures: who was measured, on what, and each round's figures.

    ``floors`` holds for each round the figures of the floor that ran just before it.
    """

    name: str
    database: str
    settings: str = ""
    workers: int = 0
    rounds: list[Figures] = field(default_factory=list)
    floors: list[Figures] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes it a row of its own."""
        return self.name, self.database, self.workers

    def median(self, column: str) -> float | None:
        """The median of a column; None where it was not measured."""
        values = [figures[column] for figures in self.rounds if column in figures]
        return statistics.median(values) if values else None

    def ratio(self, column: str) -> float | None:
        """The median of the ratios to the floor, each within its round."""
        return _median(
            own[column] / floor[column]
            for own, floor in zip(self.rounds, self.floors, strict=True)
            if column in own and column in floor
        )


@dataclass(slots=True)
class Report:
    """All of one run; a value for a key that is no goal is kept as an extra."""

    machine: dict[str, str] = field(default_factory=dict)
    sizes: Sizes = FULL
    rounds: int = 5
    subjects: list[Subject] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Why a part, or a peer, was not measured."""
    failed: list[str] = field(default_factory=list)
    """The parts of those that should have been: they went wrong."""

    def blank(self) -> Report:
        """One of the same machine and work that has found nothing yet."""
        return Report(dict(self.machine), self.sizes, self.rounds)

    def add(
        self,
        name: str,
        database: str,
        figures: Figures,
        floor: Figures | None = None,
        *,
        settings: str = "",
        workers: int = 0,
    ) -> None:
        """One round of a subject; a floor is its own floor."""
        for subject in self.subjects:
            if subject.key == (name, database, workers):
                break
        else:
            subject = Subject(name, database, settings, workers)
            self.subjects.append(subject)
        subject.rounds.append(figures)
        subject.floors.append(figures if floor is None else floor)

    def value(self, key: str, value: float) -> None:
        """One round's value of a goal, or of an extra."""
        self.values.setdefault(key, []).append(value)

    def figure(self, key: str) -> float | None:
        """What counts of a goal's or an extra's rounds, None where there is none.

        It is their median, or the longest where it is a wait.
        """
        values = self.values.get(key, [])
        return max(values, default=None) if is_longest(key) else _median(values)

    def verdict(self, goal: Goal) -> Verdict:
        """What is said of a goal, by the form that was run."""
        value = self.figure(goal.key)
        return goal.guard(value) if self.sizes.short else goal.judge(value)

    def merge(self, other: Report) -> None:
        """Take over what another run has measured, in place of the same here.

        Each ratio stays one of a single run. Raises ``ValueError`` for one of other work, or of
        another machine, on whatever day.
        """
        if self.sizes != other.sizes:
            raise ValueError("these runs measured different work")
        self._join_machine(other.machine)
        self.rounds = min(self.rounds, other.rounds)
        self.values |= other.values
        taken = {subject.key for subject in other.subjects}
        self.subjects = [each for each in self.subjects if each.key not in taken] + other.subjects
        everything = (self.missing | other.missing).items()
        self.missing = {name: why for name, why in everything if not self._has(name)}
        self.failed = [name for name in [*self.failed, *other.failed] if name in self.missing]

    def _has(self, name: str) -> bool:
        """Whether a part, a peer or an extra was measured, for what ``missing`` calls it.

        A peer's subject has its version behind the name, and an extra what it is of it.
        """
        return (
            any(goal.part == name and goal.key in self.values for goal in GOALS)
            or any(subject.name.startswith(f"{name} ") for subject in self.subjects)
            or any(key.startswith(f"{name}, ") for key in self.values)
        )

    def _join_machine(self, other: dict[str, str]) -> None:
        names = dict.fromkeys([*self.machine, *other])
        names.pop("date", None)
        different = [name for name in names if self.machine.get(name) != other.get(name)]
        if different:
            raise ValueError(f"these runs differ in: {', '.join(different)}")
        days = {day for each in (self.machine, other) for day in each["date"].split(" and ")}
        self.machine = self.machine | {"date": " and ".join(sorted(days))}

    def accidents(self) -> list[Goal]:
        """The goals of which less than half is reached."""
        return [goal for goal in GOALS if goal.is_accident(self.figure(goal.key))]

    def to_json(self) -> str:
        """Everything, with each round's values."""
        return json.dumps(self._document(), indent=1, ensure_ascii=False) + "\n"

    def _document(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "sizes": asdict(self.sizes),
            "rounds": self.rounds,
            "goals": [self._goal(goal) for goal in GOALS],
            "figures": [_figures(subject) for subject in self.subjects],
            "values": self.values,
            "missing": self.missing,
            "failed": self.failed,
        }

    def _goal(self, goal: Goal) -> dict[str, Any]:
        return {
            "key": goal.key,
            "title": goal.titled(self.sizes),
            "unit": goal.unit or "ratio",
            "value": self.figure(goal.key),
            "required": goal.required,
            "aim": goal.aim,
            "verdict": self.verdict(goal),
        }


def from_json(path: Path) -> Report:
    """The report that a run wrote; raises ``ValueError`` for anything else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        subjects = [
            Subject(**{name: each[name] for name in Subject.__slots__})
            for each in document["figures"]
        ]
        return Report(
            machine=document["machine"],
            sizes=_sizes(document["sizes"]),
            rounds=document["rounds"],
            subjects=subjects,
            values=document["values"],
            missing=document["missing"],
            failed=document["failed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: is not what --json writes") from error


def _sizes(found: dict[str, Any]) -> Sizes:
    return Sizes(**found | {"shape": Shape(**found["shape"]), "kept": tuple(found["kept"])})


def _figures(subject: Subject) -> dict[str, Any]:
    medians = {column: subject.median(column) for column in COLUMNS}
    ratios = {f"{column}_ratio": subject.ratio(column) for column in COLUMNS}
    return {name: getattr(subject, name) for name in Subject.__slots__} | medians | ratios


def _median(values: Any) -> float | None:
    collected = list(values)
    return statistics.median(collected) if collected else None
