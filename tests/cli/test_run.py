from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from batchmill.cli.running import Watched
from batchmill.errors import RetryLater
from batchmill.runner import FetchContext, Target

ECHO = """
from batchmill import Result, RetryLater, TargetError

def fetch(context, caller, target):
    with open("calls.txt", "a") as calls:
        calls.write(f"{target.url}\\n")
    if target.url.startswith("bad"):
        raise TargetError("no good", hint="try another")
    return Result(target.url.upper(), {"caller": caller.name, "options": dict(target.options)})

def other(context, caller, target):
    return Result("other")

async def slowly(context, caller, target): ...

NUMBER = 5
"""


@pytest.fixture(autouse=True)
def module(request, tmp_path: Path) -> str:
    """A module of the user's own in the current folder, of a name of its own."""
    name = f"mine_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(ECHO)
    return name


@pytest.fixture
def echo(module: str) -> str:
    return f"{module}:fetch"


def _calls() -> list[str]:
    path = Path("calls.txt")
    return path.read_text().split() if path.exists() else []


def _rows(statement: str) -> list[tuple]:
    with closing(sqlite3.connect("t.db")) as connection:
        return connection.execute(statement).fetchall()


def _list(*urls: str) -> str:
    Path("urls").write_text("".join(f"{url}\n" for url in urls))
    return "urls"


def _lines(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_one_file_is_there_and_one_is_not(invoke, tmp_path):
    """Issue 2, must show 3: partial, exit 1; show and results agree with the rows."""
    (tmp_path / "README.md").write_text("# Read me\n")
    stdin = f"file://{tmp_path}/README.md\nfile:///nope\n"
    ran = invoke("run", "-", "--db", "sqlite:///t.db", stdin=stdin)
    assert ran.exit_code == 1
    assert "partial: 1 done, 1 failed" in ran.stdout
    assert "no such file" in ran.stdout
    [(job_id, status, done)] = _rows("SELECT id, status, targets_done FROM batch_job")
    assert (status, done) == ("partial", 2)
    rows = _rows("SELECT idx, url, status, result, error, hint FROM batch_target ORDER BY idx")
    shown = json.loads(invoke("show", job_id, "--db", "sqlite:///t.db", "--json").stdout)
    results = invoke("results", job_id, "--db", "sqlite:///t.db", "--json").stdout.splitlines()
    for row, target, line in zip(rows, shown["targets"], results, strict=True):
        idx, url, status, result, error, hint = row
        told = {"idx": idx, "url": url, "status": status, "error": error or "", "hint": hint or ""}
        whole = json.loads(line)
        assert told.items() <= target.items()
        assert told.items() <= whole.items()
        assert whole["result"] == (json.loads(result) if result else None)
    assert json.loads(results[0])["result"]["content"] == "# Read me\n"
    assert rows[1][4] and rows[1][5]


def test_a_list_is_fetched_by_a_function_of_the_users_own(invoke, db, echo):
    """--fetch names a function in the current folder; it gets caller, url and options."""
    stdin = 'a\n{"url": "b", "options": {"k": 1}}\n'
    ran = invoke("run", "-", "--db", db, "--fetch", echo, "--caller", "eve", "-o", "-", stdin=stdin)
    assert ran.exit_code == 0
    first, second = (json.loads(line) for line in ran.stdout.splitlines())
    assert first["result"] == {"content": "A", "meta": {"caller": "eve", "options": {}}}
    assert second["result"]["meta"]["options"] == {"k": 1}
    assert list(first) == ["idx", "job_id", "url", "options", "status", "result", "error", "hint"]


def test_several_workers_make_several_jobs_in_one_order(invoke, db, echo):
    """--workers N is N jobs of contiguous parts; their outputs are merged in order."""
    urls = [f"u{n}" for n in range(10)]
    ran = invoke("run", _list(*urls), "--db", db, "--fetch", echo, "--workers", "3", "--out", "out")
    assert ran.exit_code == 0
    assert [line["url"] for line in _lines("out")] == urls
    assert [line["idx"] for line in _lines("out")] == list(range(10))
    totals = _rows("SELECT targets_total FROM batch_job ORDER BY id")
    assert sorted(totals) == [(3,), (3,), (4,)]


def test_many_jobs_are_counted_and_not_named(invoke, db, echo):
    """A run of many jobs says in one line how many are new, going on and reused."""
    arguments = ("run", "--db", db, "--fetch", echo, "-w", "4")
    assert "4 jobs for 4 targets: 4 new." in invoke(*arguments, _list(*"abcd")).stderr
    again = invoke(*arguments, _list(*"abxd")).stderr
    assert "4 jobs for 4 targets: 3 reused, 1 new." in again


def test_more_workers_than_targets_make_a_job_each(invoke, db, echo):
    """A list shorter than the workers has one job a target."""
    assert invoke("run", _list("a", "b"), "--db", db, "--fetch", echo, "-w", "9").exit_code == 0
    assert _rows("SELECT count(*) FROM batch_job") == [(2,)]


def test_equal_parts_are_one_job_in_two_places(invoke, db, echo):
    """A list whose parts are the same is fetched once and reported whole, as new."""
    ran = invoke("run", _list("a", "a"), "--db", db, "--fetch", echo, "-w", "2", "--out", "out")
    assert ran.exit_code == 0
    assert [(line["idx"], line["url"]) for line in _lines("out")] == [(0, "a"), (1, "a")]
    assert _calls() == ["a"]
    assert "reused" not in ran.stderr
    assert "2 done" in ran.stdout


def test_a_finished_list_is_reused_and_shown(invoke, db, echo):
    """Run again, a finished list says that the job is reused, and shows its results."""
    arguments = ("run", _list("a", "bad"), "--db", db, "--fetch", echo)
    first, again = invoke(*arguments), invoke(*arguments)
    assert (first.exit_code, again.exit_code) == (1, 1)
    assert "is reused" in again.stderr
    assert again.stdout == first.stdout
    assert _calls() == ["a", "bad"]


def test_a_list_that_failed_wholly_is_fetched_again(invoke, db, echo):
    """A failed job doesn't answer its key: run again, it is a new job."""
    arguments = ("run", _list("bad"), "--db", db, "--fetch", echo)
    assert [invoke(*arguments).exit_code, invoke(*arguments).exit_code] == [1, 1]
    assert _calls() == ["bad", "bad"]


@pytest.mark.parametrize("other", [["--caller", "eve"], ["--workers", "2"]])
def test_another_caller_or_number_of_workers_is_another_job(invoke, db, echo, other):
    """The same list of another caller, or in other parts, is submitted anew."""
    arguments = ("run", _list("a", "b"), "--db", db, "--fetch", echo)
    assert invoke(*arguments).exit_code == 0
    assert "is reused" not in invoke(*arguments, *other).stderr
    assert sorted(_calls()) == ["a", "a", "b", "b"]  # two workers are in no order


def test_another_function_has_jobs_of_its_own(invoke, db, echo, module):
    """The same list for another fetch function is another job, on another queue."""
    arguments = ("run", _list("a"), "--db", db)
    invoke(*arguments, "--fetch", echo)
    ran = invoke(*arguments, "--fetch", f"{module}:other", "-o", "-")
    assert json.loads(ran.stdout)["result"]["content"] == "other"


def test_the_end_of_a_run_in_json(invoke, db, echo):
    """--json gives status, jobs, counts and failures with their hints."""
    ran = invoke("run", _list("a", "bad"), "--db", db, "--fetch", echo, "--json")
    told = json.loads(ran.stdout)
    assert told["status"] == "partial"
    assert told["targets"] == {"pending": 0, "running": 0, "done": 1, "failed": 1}
    assert [job["reused"] for job in told["jobs"]] == [False]
    [failure] = told["failures"]
    assert (failure["idx"], failure["error"], failure["hint"]) == (1, "no good", "try another")


def test_a_failure_far_down_is_listed(invoke, db, echo):
    """Failures beyond the rows that a terminal gets are listed by themselves."""
    ran = invoke("run", _list(*(["a"] * 30), "bad one"), "--db", db, "--fetch", echo)
    assert "30  failed  bad one" in ran.stdout
    assert "no good (try another)" in ran.stdout
    assert "11 more targets" in ran.stdout


def test_the_old_results_stay_until_the_new_ones_are_whole(invoke, db, echo, monkeypatch):
    """--out is written beside the file and renamed; a failure leaves what was there."""
    Path("out").write_text("old\n")
    monkeypatch.setattr("batchmill.cli.screen.json_text", lambda value: 1 / 0)
    ran = invoke("run", _list("a"), "--db", db, "--fetch", echo, "--out", "out")
    assert ran.exit_code == 1
    assert Path("out").read_text() == "old\n"
    assert not list(Path().glob(".out*"))


def test_results_go_through_a_link_to_its_file(invoke, db, echo):
    """--out on a symbolic link replaces what it points to, not the link."""
    Path("link").symlink_to("real")
    assert invoke("run", _list("a"), "--db", db, "--fetch", echo, "-o", "link").exit_code == 0
    assert Path("link").is_symlink()
    assert _lines("real")[0]["url"] == "a"


def test_a_device_is_written_to_and_not_replaced(invoke, db, echo):
    """--out /dev/null stays a device."""
    assert invoke("run", _list("a"), "--db", db, "--fetch", echo, "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_list_of_thousands_fits(invoke, db, echo):
    """No cap of the runner's holds up a long list."""
    urls = _list(*(f"u{n}" for n in range(1500)))
    ran = invoke("run", urls, "--db", db, "--fetch", echo, "-o", "out")
    assert ran.exit_code == 0
    assert [line["url"] for line in _lines("out")] == [f"u{n}" for n in range(1500)]


def test_a_stored_text_cannot_move_the_cursor(invoke, db, echo):
    """Control characters in a target are shown as replacements, and raw in JSON only."""
    ran = invoke("run", "-", "--db", db, "--fetch", echo, stdin="a\x1b[2Jb\n")
    assert "\x1b" not in ran.stdout + ran.stderr


def test_a_database_in_memory_serves_one_run(invoke, echo):
    """sqlite:// works for a run whose results are wanted now."""
    ran = invoke("run", _list("a"), "--db", "sqlite://", "--fetch", echo, "-o", "-")
    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["status"] == "done"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "can't read nowhere"),
        (["urls", "--workers", "0"], "--workers"),
        (["urls", "--out", "."], "is a directory"),
        (["urls", "--out", "no/where"], "there is no folder"),
        (["urls", "--out", "-", "--json"], "--out"),
        (["urls", "--caller", ""], "--caller"),
        (["urls", "--timeout", "0"], "--timeout"),
        (["urls", "--max-size", "much"], "--max-size"),
        (["urls", "--fetch", "json"], "module:function"),
        (["urls", "--fetch", "no_suchmodule:f"], "there is no module no_suchmodule"),
        (["urls", "--fetch", "json.nothing:f"], "there is no module json.nothing"),
        (["urls", "--fetch", "json:nothing"], "has no nothing"),
        (["urls", "--fetch", "broken:f"], "importing broken failed (ZeroDivisionError"),
        (["urls", "--fetch", "needy:f"], "needs a module no_such_thing"),
        (["urls", "--db", "t.db"], "sqlite:///t.db"),
        (["urls", "--db", "oracle://u:hunter2@h/d"], "--db: oracle"),
        (["urls", "--db", "nonsense://x"], "nonsense"),
    ],
)
def test_wrong_usage_is_one_clear_line(invoke, arguments, said):
    """What can't work exits 2, says what is wrong, and shows no password."""
    _list("a")
    Path("broken.py").write_text("1 / 0\n")
    Path("needy.py").write_text("import no_such_thing\n")
    ran = invoke("run", *arguments)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())
    assert "hunter2" not in ran.output
    assert "Traceback" not in ran.output
    assert not Path("batchmill.db").exists()


@pytest.mark.parametrize(("name", "said"), [("slowly", "async"), ("NUMBER", "not a function")])
def test_what_is_no_plain_function_is_refused(invoke, module, name, said):
    """An async function, or something else, is refused before anything is fetched."""
    ran = invoke("run", _list("a"), "--fetch", f"{module}:{name}")
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_a_run_waits_for_its_own_jobs_only(invoke, db, echo):
    """A list that someone left unfinished on the same queue doesn't hold up another one."""
    from batchmill.cli.running import NamedCaller, queue_of, resolve_named
    from batchmill.runner import Runner, RunnerConfig
    from batchmill.store import BatchRepository, create_store_engine, migrate

    engine = create_store_engine(db)
    migrate.upgrade(engine)
    left = Runner(
        BatchRepository(engine),
        print,
        RunnerConfig(targets_per_job=500),
        resolve_caller=resolve_named,
        queue=queue_of(echo),
    )
    left.submit(NamedCaller("other"), [f"left{n}" for n in range(500)])
    engine.dispose()
    ran = invoke("run", _list("a"), "--db", db, "--fetch", echo)
    assert ran.exit_code == 0
    assert len(_calls()) < 500


def test_a_job_that_is_deleted_meanwhile_ends_the_run(invoke, db, module):
    """A job that goes away while it runs is reported, with exit 1."""
    Path(f"{module}.py").write_text(
        "from batchmill.cli.app import app\n"
        "from batchmill.store import BatchRepository, create_store_engine\n"
        "def fetch(context, caller, target):\n"
        f"    engine = create_store_engine({db!r})\n"
        "    BatchRepository(engine).delete_job(context.job_id)\n"
        "    engine.dispose()\n"
    )
    ran = invoke("run", _list("a"), "--db", db, "--fetch", f"{module}:fetch")
    assert ran.exit_code == 1
    assert "was removed meanwhile" in ran.stdout


def test_a_busy_target_is_counted_until_it_is_done():
    """A fetch that came back busy, also by a cause, counts until a later one didn't."""
    answers = [RetryLater(), ValueError(), None]

    def fetch(context, caller, target):
        answer = answers.pop(0)
        if answer is not None:
            raise answer from (RetryLater() if isinstance(answer, ValueError) else None)

    watched = Watched(fetch)
    context = FetchContext("job", 0, 1, threading.Condition())
    seen = []
    while answers:
        with suppress(RetryLater, ValueError):
            watched(context, None, Target("u"))
        seen.append(watched.busy)
    assert seen == [1, 1, 0]
