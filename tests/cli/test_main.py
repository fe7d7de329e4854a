from __future__ import annotations

import json
import subprocess
import sys

import pytest

BLOCKED = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Finder())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in {blocked!r} else found(name)
sys.argv = ["batchmill", "jobs"]
from batchmill.cli import main
main()
"""


def _python(code: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, **options
    )


@pytest.mark.parametrize("blocked", [["typer", "rich", "httpx"], ["httpx"]])
def test_a_missing_extra_is_one_line(blocked):
    """Without the extra, the command says how to get it and exits 2."""
    ran = _python(BLOCKED.format(blocked=blocked))
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "pip install 'batchmill[cli]'" in ran.stderr
    assert ", ".join(blocked) in ran.stderr


def test_the_version_is_printed(invoke):
    """--version prints it and exits 0."""
    ran = invoke("--version")
    assert ran.exit_code == 0
    assert ran.stdout.startswith("batchmill ")


def test_a_reader_that_went_away_is_no_error_to_tell(spawn, invoke, db, tmp_path):
    """``batchmill … | head`` ends without a traceback."""
    lines = "".join(f"file:///nope/{n}\n" for n in range(3000))
    assert invoke("run", "-", "--db", db, stdin=lines).exit_code == 1
    [job] = json.loads(invoke("jobs", "--db", db, "--json").stdout)
    process = spawn("results", job["id"], "--db", db, "--json")
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=20)


def test_a_terminal_that_knows_no_unicode_gets_question_marks(spawn, invoke, db):
    """Where stdout is ASCII, tables still print, and JSON is escaped."""
    invoke("run", "-", "--db", db, stdin="file:///n%C3%B6pe/ö\n")
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shown, said = spawn("jobs", "--db", db, env=env).communicate(timeout=20)
    assert "cli" in shown
    assert "Traceback" not in said


def test_a_ctrl_c_while_it_loads_is_no_traceback():
    """Nothing has begun yet: it ends as a Ctrl-C later does."""
    ran = _python(
        "import sys, batchmill.cli\n"
        "sys.modules['batchmill.cli.app'] = None\n"
        "def interrupted(name): raise KeyboardInterrupt\n"
        "batchmill.cli.importlib.util.find_spec = interrupted\n"
        "batchmill.cli.main()\n"
    )
    assert (ran.returncode, ran.stderr) == (130, "")


@pytest.mark.parametrize(
    ("closed", "code"), [("<&-", 2), (">&-", 2), ("2>&-", 2), ("<&- >&- 2>&-", 2)]
)
def test_a_closed_stream_is_an_empty_one(closed, code, db):
    """stdin, stdout or stderr may be closed: no input, or nobody who reads."""
    command = f'"{sys.executable}" -m batchmill.cli run - --db {db} {closed}'
    ran = subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert ran.returncode == code
    assert ran.stdout == ""
    assert ran.stderr in {"", "batchmill: no targets in the input: write one URL a line\n"}


def test_what_the_system_refuses_is_said_in_its_words(spawn, invoke, db, tmp_path):
    """A full disk behind stdout, or a name that is too long, is one clear line."""
    invoke("run", "-", "--db", db, stdin="file:///nope\n")
    ran = invoke("run", "-", "--db", db, "--out", "x" * 300, stdin="file:///nope\n")
    assert ran.exit_code == 1
    assert ran.stderr.endswith("batchmill: the system refused: file name too long\n")


def test_an_id_is_never_cut_and_a_command_to_copy_is_one_line(invoke, db, monkeypatch):
    """However narrow the terminal is."""
    invoke("run", "-", "--db", db, stdin="".join(f"file:///nope/{n}\n" for n in range(30)))
    [job] = json.loads(invoke("jobs", "--db", db, "--json").stdout)
    monkeypatch.setenv("COLUMNS", "30")
    assert f"\n {job['id']}  cli     failed    30/30" in invoke("jobs", "--db", db).stdout
    shown = invoke("show", job["id"], "--limit", "1", "--db", db).stdout
    assert f"batchmill show {job['id']} --limit 30 --db {db}\n" in shown


def test_a_limit_of_any_size_is_taken_or_refused(invoke, db):
    """What no list is as long as is wrong usage, not an internal error."""
    invoke("run", "-", "--db", db, stdin="file:///nope\n")
    [job] = json.loads(invoke("jobs", "--db", db, "--json").stdout)
    for command in (["jobs"], ["show", job["id"]], ["results", job["id"]]):
        assert invoke(*command, "--limit", "9" * 20, "--db", db).exit_code == 2
        assert invoke(*command, "--limit", str(2**31 - 1), "--db", db).exit_code == 0
