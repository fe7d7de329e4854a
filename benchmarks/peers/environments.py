"""A virtual environment for each peer, made once under ``.bench/`` in the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from benchmarks.child import TOP

FOLDER = TOP / ".bench"
OTHERS = ("python3.13", "python3.12")
"""Tried where a peer doesn't support the Python that runs this."""


class NotInstalled(Exception):
    """A peer can't be installed; the text says why."""


def python_of(name: str) -> str:
    """The interpreter of a peer's environment, which is made if it isn't there.

    It is made again when the requirement has changed. Raises ``NotInstalled``.
    """
    wanted = requirement(name)
    folder = FOLDER / name
    installed, python = folder / "installed", str(folder / "bin" / "python")
    if installed.exists() and installed.read_text(encoding="utf-8") == wanted:
        return python
    said = ""
    for base in _interpreters():
        shutil.rmtree(folder, ignore_errors=True)
        said = _install(base, folder, wanted)
        if not said:
            installed.write_text(wanted, encoding="utf-8")
            return python
    raise NotInstalled(f"{wanted} can't be installed: {said}")


def requirement(name: str) -> str:
    """What pyproject's extra ``bench`` asks for, without the marker of a Python version."""
    pyproject = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    for each in pyproject["project"]["optional-dependencies"]["bench"]:
        found = each.partition(";")[0].strip()
        if found.lower().startswith(name.lower()):
            return str(found)
    raise NotInstalled(f"{name} is not in the extra bench")


def version_of(python: str, name: str) -> str:
    """The version of the peer that is installed, and of its Python where that is another."""
    code = (
        "import importlib.metadata, platform; "
        f"print(importlib.metadata.version({name!r}), platform.python_version())"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    version, other = done.stdout.split()
    own = ".".join(map(str, sys.version_info[:3]))
    return version if other == own else f"{version} (Python {other})"


def _interpreters() -> list[str]:
    """Our own Python, those on the path, and those that are installed beside our own."""
    beside = Path(sys.base_prefix).parent
    found = [shutil.which(name) for name in OTHERS]
    found += [str(path) for name in OTHERS for path in sorted(beside.glob(f"*/bin/{name}"))]
    return [sys.executable, *filter(None, found)]


def _install(base: str, folder: Path, wanted: str) -> str:
    """Make the environment; "" when that worked, else the last line that was said about it."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for command in ([base, "-m", "venv", str(folder)], [*pip, wanted]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            return str(error.strerror)
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
            return lines[-1] if lines else f"exit code {done.returncode}"
    return ""
