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
