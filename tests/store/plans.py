"""Every variant of every statement, and how a server would run it with values as in the field."""

from __future__ import annotations

import inspect
import itertools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements import jobs, runners, targets, totals, turns
from batchmill.store.tx import Call, Compiler, Tx

WHOLE_TABLE = {"count_by_status", "count_targets_by_status"}
"""What stats() runs, documented as a scan."""
WALKS_AN_INDEX = {"oldest_lease", "list_jobs", "evictable_jobs"}
"""What reads an index from one end, only as far as its page or step goes."""
LIVE_JOBS = "batch_job_status_caller_ix"
"""Holds live jobs only, where a database can leave out the others."""

FIRST_LIVE = 20_000
"""The number of the first live job; see ``tests.store.filling``."""
SET = 32
"""How many members a list has, and how many sets of values are written at once."""
_TEXTS: dict[str, Callable[[int], str]] = {
    **dict.fromkeys(("job_id", "of_job", "job_ids", "spared"), lambda n: f"j{FIRST_LIVE + n}"),
    **dict.fromkeys(("token", "old_token", "tokens"), lambda n: f"t{FIRST_LIVE + n}"),
    **dict.fromkeys(("id", "holder", "runner_id", "home"), lambda _: "r3"),
    "after_id": lambda _: "j9900",
    "caller": lambda _: "c3",
    "queue": lambda _: "default",
    "status": lambda _: "done",
}
_NUMBERS = {
    "after_created": 10_000,
    "bytes": 1000,
    "expired": 120,
    "hold_for": 60_000,
    "limit": 25,
    "max_bytes": 2_000,
    "now_ms": 1_000_000,
    "start": 0,
    "want": 32,
}
_LISTS = {"job_ids", "tokens", "spared", "idxs"}
_OTHER_TEXTS = {"caller_class", "error", "hint", "idem_key", "options", "result", "url"}

_NEEDS = {
    "fresh_number": "sequences",
    "total_and_number": "sequences",
    "note_runner": "upserts",
    "announce": "pushes",
    "touch_and_read_job": "update_returning",
}


class Statement(NamedTuple):
    """A builder, and what picks the variant."""

    build: Callable[..., Any]
    variant: tuple[bool, ...]

    @property
    def name(self) -> str:
        return self.build.__name__

    @property
    def many(self) -> bool:
        """It writes several sets of values at once."""
        return self.variant == (True,) and "many" in inspect.signature(self.build).parameters

    def __str__(self) -> str:
        return f"{self.name}{list(self.variant) or ''}"


def statements(can: Capabilities) -> Iterator[Statement]:
    """Every variant of every statement that runs on such a database."""
    for module in (jobs, runners, targets, totals, turns):
        for name, build in vars(module).items():
            own = isinstance(build, types.FunctionType) and build.__module__ == module.__name__
            if own and not name.startswith("_") and _runs(can, name):
                _, *flags = inspect.signature(build).parameters
                at_once = (False,) if can.lists == "json" else (False, True)
                choices = [at_once if flag == "many" else (False, True) for flag in flags]
                for variant in itertools.product(*choices):
                    yield Statement(build, variant)


def _runs(can: Capabilities, name: str) -> bool:
    if name == "add_and_number":
        return not can.sequences
    return name not in _NEEDS or bool(getattr(can, _NEEDS[name]))


class Explainer:
    """Explains statements on one connection to a server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._compiler = Compiler(connection.engine)
        self._tx = Tx(connection, self._compiler)

    def prepared(self, statement: Statement) -> tuple[str, dict[str, Any]]:
        """Text and parameters, as the store would run it."""
        build, variant = statement
        single = self._compiler.compiled(build, (False,) if statement.many else variant)
        names = set(re.findall(r"%\((\w+)\)s", single.text)) - set(single._fixed)
        rows = [{name: self._value(name, number) for name in names} for number in range(SET)]
        if statement.many:
            (written,) = self._tx.many(build, rows)
        else:
            written = Call(build, variant, rows[0])
        return self._tx._prepared(written)

    def _value(self, name: str, number: int) -> Any:
        one = _TEXTS.get(name)
        if name in _LISTS:
            return self._tx.listed(one(each) if one else each for each in range(SET))
        if one is not None:
            return one(number)
        return "x" if name in _OTHER_TEXTS else _NUMBERS.get(name, number)

    def run(self, sql: str, values: Any = None) -> list[dict[str, Any]]:
        """Rows of a statement of the test's own."""
        answer = self._connection.exec_driver_sql(sql, values)
        return [dict(row) for row in answer.mappings()] if answer.returns_rows else []


class Walk(NamedTuple):
    """A step that reads all of a table, or of an index of it."""

    table: str
    how: str
    index: bool


def walks_on_mariadb(explain: Explainer, statement: Statement) -> list[Walk]:
    """What MariaDB would walk; aliases stand for ``batch_target``."""
    text, values = explain.prepared(statement)
    aliases = {"following": "batch_target", "pending": "batch_target"}
    return [
        Walk(aliases.get(step["table"], step["table"]), step["type"], bool(step["key"]))
        for step in explain.run(f"EXPLAIN {text}", values)
        if step["type"] in ("ALL", "index") and step["select_type"] != "INSERT"
    ]


def walks_on_postgresql(explain: Explainer, statement: Statement) -> list[Walk]:
    """What PostgreSQL would walk, with these values."""
    text, values = explain.prepared(statement)
    (row,) = explain.run(f"EXPLAIN (FORMAT JSON) {text}", values)
    return list(_walks_in(row["QUERY PLAN"][0]["Plan"]))


def generic_walks_on_postgresql(explain: Explainer, statement: Statement) -> list[Walk]:
    """What PostgreSQL would walk whatever the values, as it does with what is run often."""
    text, values = explain.prepared(statement)
    numbers = {name: number for number, name in enumerate(values, 1)}
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${numbers[found[1]]}", text).replace("%%", "%")
    explain.run("SET LOCAL plan_cache_mode = force_generic_plan")
    explain.run(f"PREPARE explained AS {text}".replace("%", "%%"))
    nulls = f"({', '.join(['NULL'] * len(values))})" if values else ""
    (row,) = explain.run(f"EXPLAIN (FORMAT JSON) EXECUTE explained{nulls}")
    explain.run("DEALLOCATE explained")
    return list(_walks_in(row["QUERY PLAN"][0]["Plan"]))


def sorts_on_mariadb(explain: Explainer, statement: Statement) -> list[str]:
    """The steps for which MariaDB would sort rows, and so read all of them first."""
    text, values = explain.prepared(statement)
    extras = [str(step["Extra"]) for step in explain.run(f"EXPLAIN {text}", values)]
    return [extra for extra in extras if "filesort" in extra or "temporary" in extra]


def sorts_on_postgresql(explain: Explainer, statement: Statement) -> list[str]:
    """The steps for which PostgreSQL would sort rows, but for those that are equal in part."""
    text, values = explain.prepared(statement)
    rows = explain.run(f"EXPLAIN {text}", values)
    steps = [row["QUERY PLAN"].strip() for row in rows]
    return [step for step in steps if step.startswith(("Sort  (", "->  Sort  ("))]


def _walks_in(node: dict[str, Any]) -> Iterator[Walk]:
    kind, index = node["Node Type"], node.get("Index Name", "")
    if kind == "Seq Scan":
        yield Walk(node["Relation Name"], kind, index=False)
    elif "Index" in kind and "Index Cond" not in node and index != LIVE_JOBS:
        yield Walk("_".join(index.split("_")[:2]), f"{kind} {index}", kind != "Bitmap Index Scan")
    for inner in node.get("Plans", ()):
        yield from _walks_in(inner)
