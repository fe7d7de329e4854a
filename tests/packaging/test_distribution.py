"""That pyproject.toml lists what there is, and that what ships is complete."""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]


def project() -> dict[str, Any]:
    return tomllib.loads((TOP / "pyproject.toml").read_text())


def python_folders(top: Path, name: str) -> set[str]:
    """The dotted names of the folders with Python files at and below ``top``."""
    found = {path.parent.relative_to(top).parts for path in top.rglob("*.py")}
    return {".".join((name, *parts)) for parts in found}


@pytest.mark.checkout
def test_packages_are_the_folders() -> None:
    """Every folder with code is listed in ``packages``, and nothing else is."""
    folders = python_folders(TOP / "src" / "batchmill", "batchmill")
    folders |= python_folders(TOP / "migrations", "batchmill.migrations")
    assert set(project()["tool"]["setuptools"]["packages"]) == folders


@pytest.mark.checkout
def test_every_package_is_a_regular_one() -> None:
    """Every package has an ``__init__.py``: a namespace package isn't found in editable mode."""
    for top in (TOP / "src" / "batchmill", TOP / "migrations"):
        for path in top.rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), path.parent


@pytest.mark.checkout
def test_changelog_names_the_version() -> None:
    """CHANGELOG.md speaks of the version that pyproject.toml has."""
    assert project()["project"]["version"] in (TOP / "CHANGELOG.md").read_text()


@pytest.mark.checkout
def test_licence_is_whole() -> None:
    """LICENSE is the Apache licence 2.0, from its title to the end of its appendix."""
    text = (TOP / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "limitations under the License." in text


def test_core_needs_two_packages() -> None:
    """Without extras only SQLAlchemy and Alembic are required."""
    required = [r for r in distribution("batchmill").requires or [] if "extra ==" not in r]
    assert sorted(r.partition(">")[0].lower() for r in required) == ["alembic", "sqlalchemy"]


def test_extras_are_the_documented_ones() -> None:
    """The extras are those of design.md section 1, and what the benchmark is compared with."""
    extras = set(distribution("batchmill").metadata.get_all("Provides-Extra") or [])
    assert extras == {"aio", "bench", "cli", "dev", "mariadb", "metrics", "postgresql"}


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("batchmill", "py.typed"),
        ("batchmill.migrations", "script.py.mako"),
        ("batchmill.migrations", "env.py"),
        ("batchmill.migrations.versions", "batchmill_0001_batch_job.py"),
    ],
)
def test_data_ships(package: str, name: str) -> None:
    """Files that aren't imported are installed too."""
    assert (files(package) / name).is_file()


def test_command_is_declared() -> None:
    """The ``batchmill`` command is ``batchmill.cli:main``."""
    commands = {e.name: e.value for e in distribution("batchmill").entry_points}
    assert commands == {"batchmill": "batchmill.cli:main"}
