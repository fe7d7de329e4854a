"""README is true: its programs run, its table is the configuration's."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from batchmill import RunnerConfig

pytestmark = pytest.mark.checkout

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]


def _run(folder: Path, *command: str) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_block_is_of_a_kind_that_runs() -> None:
    """There is no block that no test looks at."""
    assert {kind for kind, _ in BLOCKS} == {"python", "text", "sh"}


def test_the_first_program_prints_what_it_says(tmp_path: Path) -> None:
    """The output block under the first program is what it prints; it has about 30 lines."""
    (expected,) = [text for kind, text in BLOCKS if kind == "text"]
    assert _run(tmp_path, sys.executable, "-W", "error", "-c", PROGRAMS[0]) == expected
    assert len([line for line in PROGRAMS[0].splitlines() if line]) <= 32


@pytest.mark.parametrize("number", range(1, len(PROGRAMS)))
def test_each_program_runs(tmp_path: Path, number: int) -> None:
    """Every further program runs by itself, and again, without an error or a warning."""
    for _ in range(2):
        _run(tmp_path, sys.executable, "-W", "error", "-c", PROGRAMS[number])


def test_the_commands_run(tmp_path: Path) -> None:
    """The shell block runs, and its list ends partial: exit code 1."""
    (tmp_path / "poem.txt").write_text("Die Mühlen mahlen langsam.\n", encoding="utf-8")
    (script,) = [text for kind, text in BLOCKS if kind == "sh"]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    assert "exit code 1" in done.stdout
    assert "partial" in done.stdout
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2


def test_the_table_is_the_configuration() -> None:
    """Each field of RunnerConfig has its row, and sizing begins with worker_limit."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    fields = {field.name: field.default for field in dataclasses.fields(RunnerConfig)}
    assert {name for name, _ in rows} == set(fields)
    assert rows[0][0] == "worker_limit"
    for name, shown in rows:
        if isinstance(fields[name], int) and name != "max_bytes":
            assert shown == str(fields[name])


def test_links_lead_somewhere() -> None:
    """Every relative link of README names a file that is there."""
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert [link for link in links if not (README.parent / link).exists()] == []
