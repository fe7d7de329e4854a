"""The command on PostgreSQL, in a schema too, and on MariaDB."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from batchmill.store import BatchRepository, migrate
from tests.cli.test_commands import READERS
from tests.migrations.places import SERVERS, MakePlace, Place, make_place

__all__ = ["make_place"]

MINE = """
from batchmill import Result, TargetError
from batchmill.cli.running import NamedCaller

def fetch(context, caller, target):
    if target.url.startswith("bad"):
        raise TargetError("no good")
    return Result(target.url.upper())

def anybody(name, caller_class):
    return NamedCaller(name)
"""
PASSWORD = "hunter2"


@pytest.fixture(params=SERVERS)
def place(request: pytest.FixtureRequest, make_place: MakePlace, tmp_path: Path) -> Place:
    """An empty database of a server's, and a module of the user's own."""
    (tmp_path / "mine.py").write_text(MINE)
    return make_place(request.param)


def at(place: Place) -> list[str]:
    """The options that name it."""
    return ["--db", place.url, *([] if place.schema is None else ["--schema", place.schema])]


def told(invoke, place: Place, *command: str):
    """What a command answers to programs."""
    ran = invoke(*command, *at(place), "--json")
    assert ran.exit_code == 0, ran.stderr
    return json.loads(ran.stdout)


def refused(ran, said: str, code: int = 1) -> None:
    """One line on stderr that says it, and shows nothing that is nobody's business."""
    assert ran.exit_code == code, ran.output
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    for secret in ("Traceback", PASSWORD, "127.0.0.1", "@"):
        assert secret not in ran.output


def test_a_job_from_run_to_delete(place, invoke):
    """run makes the tables and works; the other commands show, sweep and remove what it left."""
    Path("urls").write_text("a\nbad\nc\n")
    ran = invoke("run", "urls", *at(place), "--fetch", "mine:fetch", "--out", "out", "--json")
    assert ran.exit_code == 1, ran.stderr
    lines = [json.loads(line) for line in Path("out").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["done", "failed", "done"]
    (job,) = told(invoke, place, "jobs")
    assert (job["status"], job["targets_done"]) == ("partial", 3)
    assert told(invoke, place, "show", job["id"])["job"] == job
    results = invoke("results", job["id"], *at(place), "--json").stdout.splitlines()
    assert json.loads(results[2])["result"]["content"] == "C"
    assert told(invoke, place, "stats")["targets"]["failed"] == 1
    assert told(invoke, place, "sweep")["removed"] == 0
    assert invoke("cancel", job["id"], *at(place)).exit_code == 1
    again = invoke("run", "urls", *at(place), "--fetch", "mine:fetch")
    assert f"delete {job['id']}" in " ".join((again.stdout + again.stderr).split())
    assert told(invoke, place, "evict", "--max-bytes", "0") == {"removed": 1, "nbytes": 0}
    refused(invoke("delete", job["id"], *at(place)), "no such job")
    place_is_migrated(place)


def place_is_migrated(place: Place) -> None:
    migrate.verify(place.engine(), schema=place.schema)


def test_the_tables_are_made_and_checked(place, invoke):
    """db upgrade makes them, check and current agree, and db sql is what an upgrade does."""
    made = told(invoke, place, "db", "upgrade")
    assert made["before"] is None
    assert told(invoke, place, "db", "check") == {"ok": True, "revision": made["revision"]}
    assert told(invoke, place, "db", "current") == {"revision": made["revision"]}
    assert "up to date" in invoke("db", "upgrade", *at(place)).stdout
    printed = invoke("db", "sql", *at(place)).stdout
    assert printed == migrate.sql(place.url, schema=place.schema)
    place.assert_migrated()


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_an_empty_database_is_said(command, make_place, invoke):
    """No command but run, demo and db upgrade makes tables; the line says what to type."""
    place = make_place("schema")
    with_tables = f"--db URL --schema {shlex.quote(place.schema)}"
    ran = invoke(*command, *at(place))
    assert with_tables in ran.stderr
    refused(ran, "is empty: run batchmill db upgrade")
    assert place.dump() == "\n"


def test_tables_of_others_are_left_alone(place, invoke):
    """run doesn't put its tables beside others by itself; db upgrade does."""
    with place.inside() as connection:
        connection.execute(text("CREATE TABLE theirs (x INTEGER)"))
    ran = invoke("run", "-", *at(place), stdin="file:///nope\n")
    refused(ran, "holds other tables and none of batchmill's")
    refused(invoke("jobs", *at(place)), "has none of batchmill's tables")
    assert invoke("db", "upgrade", *at(place)).exit_code == 0
    assert told(invoke, place, "jobs") == []


@pytest.mark.parametrize(("revision", "said"), [("9999", "newer"), ("batchmill_0001", "older")])
def test_tables_of_another_version_are_said(revision, said, place, invoke):
    """Behind and ahead: every command, run too, says what to do; nothing is migrated."""
    migrate.upgrade(place.engine(), schema=place.schema)
    with place.inside() as connection:
        changed = text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = :r")
        connection.execute(changed, {"r": revision})
    for command in (["jobs"], ["db", "check"], ["run", "-"]):
        refused(invoke(*command, *at(place), stdin="x\n"), said)


def test_the_environment_names_the_place(make_place, invoke, monkeypatch):
    """BATCHMILL_DATABASE_URL and BATCHMILL_DATABASE_SCHEMA stand in for the options."""
    place = make_place("schema")
    monkeypatch.setenv("BATCHMILL_DATABASE_URL", place.url)
    monkeypatch.setenv("BATCHMILL_DATABASE_SCHEMA", place.schema)
    refused(invoke("jobs"), "is empty: run batchmill db upgrade to make its tables")
    assert invoke("db", "upgrade").exit_code == 0
    assert invoke("jobs").stdout == "No jobs.\n"
    place.assert_migrated()


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb"])
def test_a_server_that_is_not_there(scheme, invoke):
    """Nobody listens: one line, with neither the address nor the password."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    url = f"{scheme}://u:{PASSWORD}@127.0.0.1:{port}/d"
    for command in (["jobs"], ["run", "-"], ["db", "upgrade"]):
        refused(invoke(*command, "--db", url, stdin="x\n"), "reachable")


def test_a_server_that_never_answers(invoke):
    """A server that takes the connection and says nothing is given up, as the URL says how soon.

    Not so on MariaDB: PyMySQL's time-out ends with the connection's beginning.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        at = f"127.0.0.1:{listener.getsockname()[1]}"
        url = f"postgresql://u:{PASSWORD}@{at}/d?connect_timeout=2"
        begun = time.monotonic()
        refused(invoke("jobs", "--db", url), "reachable")
    assert time.monotonic() - begun < 20


def test_a_wrong_password(make_place, invoke):
    """The server refuses the user: one line, with neither the password nor the address."""
    place = make_place("mariadb")
    url = place.address.set(password=PASSWORD).render_as_string(hide_password=False)
    refused(invoke("jobs", "--db", url), "lets this user in")


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_database_that_is_not_there(kind, make_place, invoke):
    """A server without the database that the URL names: one line."""
    url = make_place(kind).address.set(database="nowhere").render_as_string(hide_password=False)
    refused(invoke("jobs", "--db", url), "check that it is there")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--db", "sqlite:///t.db", "--schema", "s"], "--schema: this database has no schemas"),
        (["--db", f"mariadb://u:{PASSWORD}@h/d", "--schema", "s"], "--schema: this database has"),
        (["--db", f"postgresql://u:{PASSWORD}@h/d", "--schema", ""], "--schema: must not be empty"),
        (["--db", f"postgresql://u:{PASSWORD}@h/d", "--schema", "pg_x"], "--schema: is a name"),
        (["--db", f"mariadb://u:{PASSWORD}@h"], "--db: names no database"),
        (["--db", f"a b://u:{PASSWORD}@h"], "--db: is not a database URL"),
        (["--db", f"mysql://u:{PASSWORD}@h/d"], "--db: its driver is not supported"),
        (["--db", f"postgresql+nope://u:{PASSWORD}@h/d"], "--db: names a driver"),
        (["--db", f"postgresql+psycopg2://u:{PASSWORD}@h/d"], "--db: its driver is not supported"),
    ],
)
def test_wrong_usage(arguments, said, invoke):
    """What can't work exits 2, names the option, and shows no password."""
    for command in (["jobs"], ["run", "-"]):
        refused(invoke(*command, *arguments, stdin="x\n"), said, 2)
    assert list(Path().glob("*.db")) == []


def test_a_schema_that_is_not_there(make_place, invoke):
    """A missing schema exits 2, names the option and says how to make it."""
    url = make_place("postgresql").url
    for command in (["jobs"], ["run", "-"], ["db", "upgrade"]):
        ran = invoke(*command, "--db", url, "--schema", "missing", stdin="x\n")
        refused(ran, "--schema: is not there", 2)
        assert "CREATE SCHEMA" in ran.stderr


@pytest.mark.parametrize(
    ("scheme", "module", "extra"),
    [("postgresql", "psycopg", "postgresql"), ("mariadb", "pymysql", "mariadb")],
)
def test_a_driver_that_is_not_installed(scheme, module, extra, invoke, monkeypatch):
    """A missing driver exits 2 and says which extra to install."""
    monkeypatch.setitem(sys.modules, module, None)
    ran = invoke("jobs", "--db", f"{scheme}://u:{PASSWORD}@h/d")
    refused(ran, f"pip install 'batchmill[{extra}]'", 2)


@pytest.mark.parametrize("kind", ["schema", "mariadb"])
def test_a_worker_on_a_server(kind, make_place, invoke, spawn, tmp_path):
    """A worker fetches what another process submits to its queue; SIGTERM ends it with 0."""
    (tmp_path / "mine.py").write_text(MINE)
    place = make_place(kind)
    assert invoke("db", "upgrade", *at(place)).exit_code == 0
    functions = ["--fetch", "mine:fetch", "--resolve-caller", "mine:anybody"]
    worker = spawn("worker", *at(place), *functions, "--queue", "run:mine:fetch")
    assert "Working on" in worker.stderr.readline()
    Path("urls").write_text("a\n")
    ran = invoke("run", "urls", *at(place), "--fetch", "mine:fetch", "--json")
    assert ran.exit_code == 0, ran.stderr
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=20)
    assert (worker.returncode, "Traceback" in said) == (0, False)
    store = BatchRepository(place.engine(), schema=place.schema)
    assert store.stats().targets == {"done": 1}


def test_the_demo_on_a_server(make_place, invoke):
    """The demo plays in an empty schema of a server's, by its URL's search path."""
    place = make_place("postgresql")
    ran = invoke("demo", "--db", place.url, "--pace", "0")
    assert ran.exit_code == 0, ran.stderr
    assert "batchmill jobs --db URL" in " ".join(ran.stdout.split())
    refused(invoke("demo", "--db", place.url), "holds tables already", 2)
