from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.store import BatchRepository, create_store_engine, migrate

ID = "j" * 32
DAY = 86400


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with batchmill's tables, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "t.db"
    engine = create_store_engine(f"sqlite:///{path}")
    migrate.upgrade(engine)
    engine.dispose()
    return path


@pytest.fixture
def store(db: str, migrated: Path) -> Iterator[BatchRepository]:
    """A migrated database with a job of three targets: one done, one failed, one pending."""
    shutil.copy(migrated, "t.db")
    engine = create_store_engine(db)
    store = BatchRepository(engine)
    now = int(store.now())
    job = BatchJob(ID, "eve", "restricted", "k", targets_total=3, created_at=now, lease=now)
    store.create_job(job)
    store.put_targets(ID, [BatchTarget(ID, n, f"http://h/{n}") for n in range(3)])
    store.update_target(
        ID, 0, now=now, status=TargetStatus.DONE, result='{"content": "text", "meta": {}}'
    )
    store.update_target(ID, 1, now=now, status=TargetStatus.FAILED, error="no", hint="yes")
    yield store
    engine.dispose()


def _finish(store: BatchRepository, job_id: str = ID, *, lease: int | None = None) -> None:
    now = int(store.now()) if lease is None else lease
    store.set_job_status(job_id, JobStatus.PARTIAL, now=now)


def _in_database(statement: str) -> list[tuple]:
    with closing(sqlite3.connect("t.db")) as connection:
        return connection.execute(statement).fetchall()


def test_jobs_are_listed_newest_first_and_by_page(store, invoke, db):
    """jobs shows the newest first, filters by caller and status, and goes on after a job."""
    for n in range(3):
        store.create_job(BatchJob(f"a{n}", "ada", "fleet", f"k{n}", created_at=100 + n, lease=5))
    listed = json.loads(invoke("jobs", "--db", db, "--json").stdout)
    assert [job["id"] for job in listed] == [ID, "a2", "a1", "a0"]
    of_ada = ["jobs", "--db", db, "--json", "--caller", "ada", "--limit", "2"]
    assert [job["id"] for job in json.loads(invoke(*of_ada).stdout)] == ["a2", "a1"]
    rest = json.loads(invoke(*of_ada, "--after", "a1").stdout)
    assert [job["id"] for job in rest] == ["a0"]
    assert json.loads(invoke("jobs", "--db", db, "--status", "done", "--json").stdout) == []


def test_a_table_of_jobs_has_whole_ids(store, invoke, db):
    """An id in a table is never cut, since it is what the other commands take."""
    shown = invoke("jobs", "--db", db, "--limit", "1").stdout
    assert ID in shown
    assert f"--after {ID}" in shown


def test_no_jobs_is_said(store, invoke, db):
    """An empty list is a line for people and an empty list in JSON."""
    assert invoke("jobs", "--db", db, "--caller", "nobody").stdout == "No jobs.\n"


def test_show_has_the_fields_and_the_targets(store, invoke, db):
    """show prints every field of the job, and each target's status, error and hint."""
    shown = invoke("show", ID, "--db", db).stdout
    for text in (ID, "queued", "eve (restricted)", "2 of 3 finished", "http://h/2", "no (yes)"):
        assert text in shown
    told = json.loads(invoke("show", ID, "--db", db, "--json").stdout)
    columns = ", ".join(told["job"])
    assert _in_database(f"SELECT {columns} FROM batch_job") == [tuple(told["job"].values())]
    assert [target["status"] for target in told["targets"]] == ["done", "failed", "pending"]


def test_a_long_job_is_cut_in_the_table_and_whole_in_json(store, invoke, db):
    """--limit bounds the table's rows, which says what is left out; JSON has them all."""
    assert "2 more targets" in invoke("results", ID, "--db", db, "--limit", "1").stdout
    lines = invoke("results", ID, "--db", db, "--limit", "1", "--json").stdout.splitlines()
    assert [json.loads(line)["idx"] for line in lines] == [0, 1, 2]


def test_a_result_of_another_shape_is_all_content(store, invoke, db):
    """A result that an application wrote in its own shape reads as content."""
    store.update_target(ID, 0, now=1, status=TargetStatus.DONE, result="[1, 2]")
    first = invoke("results", ID, "--db", db, "--json").stdout.splitlines()[0]
    assert json.loads(first)["result"] == {"content": [1, 2], "meta": {}}


def test_reading_changes_nothing(store, invoke, db):
    """jobs, show, results and stats leave every row as it was, the lease too."""
    before = _in_database("SELECT * FROM batch_job")
    for command in (["jobs"], ["show", ID], ["results", ID], ["stats"]):
        assert invoke(*command, "--db", db).exit_code == 0
    assert _in_database("SELECT * FROM batch_job") == before


def test_stats_count_jobs_and_targets_by_status(store, invoke, db):
    """stats has every status in JSON, zeros included, and the bytes of the results."""
    told = json.loads(invoke("stats", "--db", db, "--json").stdout)
    assert told["jobs"] == {s: int(s == "queued") for s in JobStatus}
    assert told["targets"] == {"pending": 1, "running": 0, "done": 1, "failed": 1}
    assert told["nbytes"] == len('{"content": "text", "meta": {}}')
    assert "31 bytes" in invoke("stats", "--db", db).stdout


def test_a_job_is_cancelled_once(store, invoke, db):
    """cancel ends a live job; of one that has ended it says so, with exit 1."""
    assert json.loads(invoke("cancel", ID, "--db", db, "--json").stdout)["cancelled"] is True
    again = invoke("cancel", ID, "--db", db)
    assert again.exit_code == 1
    assert "has ended already (cancelled)" in again.stderr


def test_a_job_is_deleted_with_its_targets(store, invoke, db):
    """delete removes the job and its targets."""
    assert "Deleted" in invoke("delete", ID, "--db", db).stdout
    assert _in_database("SELECT count(*) FROM batch_target") == [(0,)]
    assert invoke("delete", ID, "--db", db).exit_code == 1


@pytest.mark.parametrize(("ttl", "removed"), [("1d", 1), ("3d", 0), ("0s", 1)])
def test_a_sweep_removes_what_was_last_used_too_long_ago(store, invoke, db, ttl, removed):
    """sweep takes jobs whose lease and ttl have passed, and says how many."""
    store.touch_job(ID, now=store.now() - 2 * DAY)
    told = json.loads(invoke("sweep", "--db", db, "--ttl", ttl, "--json").stdout)
    assert told["removed"] == removed
    assert _in_database("SELECT count(*) FROM batch_job") == [(1 - removed,)]


def test_an_eviction_holds_to_the_budget(store, invoke, db):
    """evict takes finished jobs until the results fit; a live one never."""
    evict = ["evict", "--db", db, "--max-bytes", "10", "--json"]
    assert json.loads(invoke(*evict).stdout) == {"removed": 0, "nbytes": 31}
    _finish(store)
    assert json.loads(invoke(*evict).stdout) == {"removed": 1, "nbytes": 0}


@pytest.mark.parametrize("job_id", ["nope", "", "x" * 65, "a\nb", "\ud83d", "é"])
@pytest.mark.parametrize("command", ["show", "results", "cancel", "delete"])
def test_an_unknown_id_is_one_line(store, invoke, db, command, job_id):
    """An unknown id, or one that can't be one, exits 1 with a line on stderr."""
    ran = invoke(command, job_id, "--db", db)
    assert ran.exit_code == 1
    assert ran.stderr.startswith("batchmill: no such job")
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


READERS = [
    ["jobs"],
    ["show", "x"],
    ["results", "x"],
    ["cancel", "x"],
    ["delete", "x"],
    ["stats"],
    ["sweep"],
    ["evict", "--max-bytes", "1"],
    ["worker", "--fetch", "json:loads", "--resolve-caller", "json:loads"],
    ["db", "current"],
    ["db", "check"],
]


def _one_line(ran, said: str) -> None:
    assert ran.exit_code == 1
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.output


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_missing_database_is_said_and_not_made(invoke, db, command):
    """No command but run, demo and db upgrade makes a file."""
    _one_line(invoke(*command, "--db", db), "there is no database")
    assert list(Path().glob("t.db*")) == []


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_file_that_is_not_ours_is_left_alone(invoke, db, command):
    """Another program's database, an empty one, a text, a folder: said, and not changed."""
    with closing(sqlite3.connect("theirs.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    Path("text.db").write_text("This is no database.\n" * 100)
    Path("empty.db").touch()
    Path("folder.db").mkdir()
    said = {
        "theirs": "none of batchmill's tables",
        "text": "is not an SQLite database",
        "empty": "is empty",
        "folder": "is a directory",
    }
    before = {path: path.read_bytes() for path in Path().glob("*.db") if path.is_file()}
    for name, text in said.items():
        _one_line(invoke(*command, "--db", f"sqlite:///{name}.db"), text)
    after = {path: path.read_bytes() for path in Path().glob("*.db*") if path.is_file()}
    assert after == before


def test_run_makes_its_tables_in_an_empty_file_only(invoke, db):
    """run migrates a file that is missing or empty, and refuses another program's."""
    with closing(sqlite3.connect("theirs.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = Path("theirs.db").read_bytes()
    ran = invoke("run", "-", "--db", "sqlite:///theirs.db", stdin="file:///nope\n")
    _one_line(ran, "holds other tables")
    assert Path("theirs.db").read_bytes() == before
    Path("t.db").touch()
    assert "1 failed" in invoke("run", "-", "--db", db, stdin="file:///nope\n").stdout


@pytest.mark.parametrize(("revision", "said"), [("9999", "newer"), ("batchmill_0001", "older")])
def test_tables_of_another_version_are_said(store, invoke, db, revision, said):
    """Behind and ahead: every command, run too, says what to do; nothing is migrated."""
    with closing(sqlite3.connect("t.db")) as connection, connection:
        connection.execute("UPDATE batchmill_alembic_version SET version_num = ?", [revision])
    for command in (["jobs"], ["db", "check"], ["run", "-"]):
        _one_line(invoke(*command, "--db", db, stdin="x\n"), said)
    assert _in_database("SELECT version_num FROM batchmill_alembic_version") == [(revision,)]


def test_the_tables_are_made_and_checked(invoke, db):
    """db upgrade makes the file; current and check agree; a second upgrade does nothing."""
    made = json.loads(invoke("db", "upgrade", "--db", db, "--json").stdout)
    assert made["before"] is None
    told = json.loads(invoke("db", "check", "--db", db, "--json").stdout)
    assert told == {"ok": True, "revision": made["revision"]}
    assert invoke("db", "current", "--db", db).stdout == f"{made['revision']}\n"
    assert "up to date" in invoke("db", "upgrade", "--db", db).stdout


def test_the_sql_makes_the_same_tables(invoke, db):
    """What db sql prints, run by the database's own shell, is what db upgrade makes."""
    printed = invoke("db", "sql", "--db", db)
    assert printed.exit_code == 0
    assert not Path("t.db").exists()
    invoke("db", "upgrade", "--db", db)
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    with closing(sqlite3.connect("by_hand.db")) as connection:
        connection.executescript(printed.stdout)
        assert connection.execute(tables).fetchall() == _in_database(tables)
    assert invoke("db", "check", "--db", "sqlite:///by_hand.db").exit_code == 0


def test_the_environment_names_the_database(store, invoke, db, monkeypatch):
    """BATCHMILL_DATABASE_URL stands in for --db."""
    monkeypatch.setenv("BATCHMILL_DATABASE_URL", db)
    assert ID in invoke("jobs").stdout


def test_a_hint_finds_the_database_that_was_named(invoke, monkeypatch):
    """The command to type names it also where it is the default one, and another is set."""
    monkeypatch.setenv("BATCHMILL_DATABASE_URL", "sqlite:///other.db")
    told = invoke("jobs", "--db", "sqlite:///batchmill.db").stderr
    assert "batchmill db upgrade --db sqlite:///batchmill.db" in " ".join(told.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["jobs", "--limit", "0"],
        ["jobs", "--status", "happy"],
        ["show"],
        ["results"],
        ["cancel"],
        ["delete", "a", "b"],
        ["stats", "--wrong"],
        ["sweep", "--ttl", "-1s"],
        ["evict"],
        ["evict", "--max-bytes", "some"],
        ["worker"],
        ["worker", "--fetch", "x:y"],
        ["worker", "--fetch", "x:y", "--resolve-caller", "json:loads"],
        ["demo", "--pace", "-1"],
        ["run"],
        ["db", "nonsense"],
        ["db", "upgrade", "extra"],
        ["db", "sql", "--db", "nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_2(invoke, arguments):
    """Every command refuses arguments that it doesn't know, without a traceback."""
    ran = invoke(*arguments)
    assert ran.exit_code == 2
    assert ran.stderr
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    "command",
    [*(command[0] for command in READERS if command[0] != "db"), "run", "demo"]
    + [f"db {name}" for name in ("upgrade", "current", "check", "sql")],
)
def test_every_command_explains_itself(invoke, command):
    """--help of each command exits 0 and says what it does."""
    ran = invoke(*command.split(), "--help")
    assert ran.exit_code == 0
    assert "Usage: " in ran.stdout


def test_an_unforeseen_error_is_a_line_without_its_text(store, invoke, db, monkeypatch):
    """A bug ends in one line that names its class only: its text may hold anything."""

    def fails(self):
        raise RuntimeError("hunter2")

    monkeypatch.setattr(BatchRepository, "stats", fails)
    ran = invoke("stats", "--db", db)
    _one_line(ran, "internal error (RuntimeError)")
    assert "hunter2" not in ran.output
