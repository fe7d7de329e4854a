"""What an installed wheel must do with nothing but its core dependencies: called by wheel-test."""

from __future__ import annotations

import importlib.util
import sys
from importlib.resources import files

import batchmill
from batchmill.store import BatchRepository, create_store_engine, migrate


def main(path: str) -> None:
    """Migrate a file and use it."""
    for extra in ("typer", "rich", "httpx", "psycopg", "pymysql", "aiosqlite"):
        assert importlib.util.find_spec(extra) is None, f"{extra} is installed"
    assert "site-packages" in str(batchmill.__file__)
    assert (files("batchmill") / "py.typed").is_file()
    assert (files("batchmill.migrations") / "script.py.mako").is_file()
    engine = create_store_engine(f"sqlite:///{path}")
    migrate.upgrade(engine)
    migrate.verify(engine)
    repository = BatchRepository(engine)
    repository.create_job(batchmill.BatchJob("j1", "caller", "restricted", "key"))
    assert repository.get_job("j1") is not None
    migrate.downgrade(engine, "base")
    engine.dispose()


main(sys.argv[1])
