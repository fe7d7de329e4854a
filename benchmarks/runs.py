"""The parts by name, and one run over some of them."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine
from benchmarks.context import Context
from benchmarks.databases import Databases, Missing
from benchmarks.parts import (
    drains,
    growth,
    idle,
    imports,
    memory,
    peers,
    processes,
    progress,
    stalls,
    start,
)
from benchmarks.report import Report
from benchmarks.shape import FULL, SHORT

REQUIRE = "BATCHMILL_REQUIRE_DATABASES"
"""Set in the environment, a database that is not installed is a failure, as for the tests."""


@dataclass(frozen=True, slots=True)
class Part:
    """What can be run by itself, and whether it belongs to the short form."""

    measure: Callable[[Context], None]
    about: str
    in_short: bool = True


PARTS = {
    "sqlite": Part(drains.sqlite, "submit, drain, read back on SQLite"),
    "postgresql": Part(drains.postgresql, "the same on PostgreSQL"),
    "mariadb": Part(drains.mariadb, "the same on MariaDB"),
    "processes": Part(processes.measure, "two worker processes beside one", in_short=False),
    "idle": Part(idle.measure, "submit to stored of single targets"),
    "start": Part(start.measure, "submit to start from another process", in_short=False),
    "peers": Part(peers.measure, "huey, litequeue, PgQueuer", in_short=False),
    "growth": Part(growth.measure, "the cost beside a million kept jobs (minutes)"),
    "stalls": Part(
        stalls.measure, "a writer beside a sweep and an eviction (minutes)", in_short=False
    ),
    "memory": Part(memory.measure, "peak memory (minutes)", in_short=False),
    "progress": Part(progress.measure, "progress() of a large job"),
    "imports": Part(imports.measure, "import times"),
}
"""In the order in which they run."""


def run(
    names: Sequence[str], *, rounds: int, short: bool, folder: Path | None, json: Path | None
) -> Report:
    """Measure these parts; one that fails says so in the report, and the others go on.

    What was found so far is written to ``json`` after each part. In the short form a part in
    which something fell under half of what is required is measured once more: the second time
    counts, since a machine can be busy for a moment.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        place = Path(temporary)
        place.chmod(0o755)  # a server may run as a user of its own
        sizes = SHORT if short else FULL
        report = Report(machine.describe(place), sizes, rounds)
        databases = Databases(place)
        try:
            for name in names:
                found = _measured(name, report, databases, place)
                if short and (found.failed or found.accidents()):
                    databases.restart()
                    found = _measured(name, report, databases, place)
                report.merge(found)
                if json is not None:
                    json.write_text(report.to_json(), encoding="utf-8")
        finally:
            databases.close()
    return report


def _measured(name: str, report: Report, databases: Databases, place: Path) -> Report:
    """What a part found, or why it found nothing; what it had found by then doesn't count."""
    found, nothing = report.blank(), report.blank()
    try:
        PARTS[name].measure(Context(found, databases, place))
    except Missing as error:
        nothing.missing[name] = str(error)
        nothing.failed = [name] * bool(os.environ.get(REQUIRE))
        return nothing
    except Exception as error:  # noqa: BLE001 - whatever it is, the other parts still count
        traceback.print_exc()
        nothing.missing[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
        nothing.failed = [name]
        return nothing
    return found
