"""What importing batchmill costs, and that its names are where they are promised."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import batchmill
import batchmill.runner
import batchmill.store

HEAVY = ("sqlalchemy", "alembic", "typer", "rich", "httpx", "pytest", "hypothesis", "asyncio")


def modules_after(statement: str) -> set[str]:
    """The top-level modules of a fresh interpreter after one statement."""
    code = f"{statement}\nimport sys\nprint(*{{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["batchmill", "batchmill.runner", "batchmill.testing"])
def test_imports_nothing_heavy(module: str) -> None:
    """Importing it pulls in no SQLAlchemy, and none of the extras."""
    assert modules_after(f"import {module}") & set(HEAVY) == set()


def test_store_imports_none_of_the_extras() -> None:
    """The store needs SQLAlchemy, and its migrations Alembic, and no extra."""
    found = modules_after("import batchmill.store, batchmill.store.migrate")
    assert found & {"typer", "rich", "httpx", "pytest", "hypothesis"} == set()


def test_every_public_name_resolves() -> None:
    """Each name of ``batchmill.__all__`` is there, and is listed by ``dir``."""
    for name in batchmill.__all__:
        assert getattr(batchmill, name) is not None
    assert set(batchmill.__all__) <= set(dir(batchmill))


def test_names_are_the_same_objects() -> None:
    """A name is the same object, imported from batchmill or from its own package."""
    for package in ("batchmill.runner", "batchmill.store", "batchmill.errors"):
        module = importlib.import_module(package)
        for name in set(getattr(module, "__all__", ())) & set(batchmill.__all__):
            assert getattr(batchmill, name) is getattr(module, name)


@pytest.mark.parametrize("package", ["batchmill.runner", "batchmill.store"])
def test_packages_names_are_re_exported(package: str) -> None:
    """What the runner and the store make public, batchmill has too, and it resolves."""
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(batchmill.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_every_error_is_public() -> None:
    """Each exception of batchmill can be imported from batchmill."""
    errors = importlib.import_module("batchmill.errors")
    named = {
        n
        for n, v in vars(errors).items()
        if isinstance(v, type) and v.__module__ == errors.__name__
    }
    assert named <= set(batchmill.__all__)


def test_an_unknown_name() -> None:
    """A name that isn't there is an AttributeError that says so."""
    with pytest.raises(AttributeError, match="no_such_name"):
        batchmill.no_such_name  # noqa: B018


def test_version_is_the_installed_one() -> None:
    """``__version__`` comes from what is installed."""
    from importlib.metadata import version

    assert batchmill.__version__ == version("batchmill")
