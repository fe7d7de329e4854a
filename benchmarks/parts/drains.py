"""Submit, drain and read back: batchmill with 1, 8 and 32 workers beside the floor."""

from __future__ import annotations

from benchmarks.child import call
from benchmarks.context import Context
from benchmarks.shape import Figures

WORKERS = (1, 8, 32)


def sqlite(context: Context) -> None:
    """Both durabilities."""
    _rounds(context, ("sqlite-full", "sqlite-normal"), "")


def postgresql(context: Context) -> None:
    """As the server comes."""
    _rounds(context, ("postgresql",), context.databases.describe("postgresql"))


def mariadb(context: Context) -> None:
    """As the server comes."""
    _rounds(context, ("mariadb",), context.databases.describe("mariadb"))


def floor(context: Context, name: str, per_commit: int = 1) -> Figures:
    """The floor on a fresh database."""
    module, durability = split(name)
    with context.databases.fresh(name) as url:
        figures: Figures = call(
            f"benchmarks.floors.{module}:run",
            url=url,
            durability=durability,
            per_commit=per_commit,
            **context.sizes.shape.arguments(),
        )
    return figures


def split(name: str) -> tuple[str, str]:
    """The database, and the durability that an engine is asked for."""
    module, _, durability = name.partition("-")
    return module, durability or "full"


def _rounds(context: Context, names: tuple[str, ...], settings: str) -> None:
    for number in range(context.rounds):
        for name in names:
            context.say(f"{name}, round {number + 1} of {context.rounds}")
            _round(context, name, settings)


def _round(context: Context, name: str, settings: str) -> None:
    """A floor just before each number of workers: what a disk gives changes by the minute."""
    for workers in WORKERS:
        base = floor(context, name)
        own = _mill(context, name, workers)
        context.report.add("floor", name, base, settings=settings)
        context.report.add("batchmill", name, own, base, settings=settings, workers=workers)
        context.report.value(f"drain-{name}-{workers}", own["drain"] / base["drain"])
        if workers == 1:
            for column in ("submit", "read"):
                context.report.value(f"{column}-{name}", own[column] / base[column])
    if each := context.sizes.grouped:
        title = f"floor, {each} targets a commit"
        grouped = floor(context, name, each)
        context.report.add(title, name, grouped, base, settings=settings)


def _mill(context: Context, name: str, workers: int) -> Figures:
    with context.databases.fresh(name) as url:
        figures: Figures = call(
            "benchmarks.mill:run",
            url=url,
            durability=split(name)[1],
            workers=workers,
            **context.sizes.shape.arguments(),
        )
    return figures
