"""``batchmill db``: the tables of the database."""

from __future__ import annotations

import sys

import typer

from batchmill.cli import options, screen
from batchmill.cli.database import (
    DEFAULT_URL,
    Place,
    name_of,
    open_engine,
    open_for_upgrade,
    sql_for,
)
from batchmill.cli.errors import Funnel
from batchmill.store import migrate

app = typer.Typer(cls=Funnel, no_args_is_help=True, help="Make, check and print the tables.")


@app.command()
def upgrade(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Bring the tables to this version; makes a file that isn't there."""
    place = Place(db, schema)
    with open_for_upgrade(place) as engine:
        before = migrate.current(engine, schema=schema)
        migrate.upgrade(engine, schema=schema)
        after = migrate.current(engine, schema=schema)
    if as_json:
        screen.print_json({"before": before, "revision": after})
    elif before == after:
        screen.out().print(screen.cell(f"{name_of(place)} is up to date ({after})."))
    else:
        screen.out().print(screen.cell(f"{name_of(place)}: {before or 'no tables'} → {after}."))


@app.command()
def current(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Say which revision the tables are of."""
    with open_engine(Place(db, schema)) as engine:
        revision = migrate.current(engine, schema=schema)
    if as_json:
        screen.print_json({"revision": revision})
    else:
        screen.out().print(revision or "no revision: run batchmill db upgrade")


@app.command()
def check(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Exit 0 when the tables are of this version, else 1, and say what to run."""
    with open_engine(Place(db, schema)) as engine:
        migrate.verify(engine, schema=schema)
        revision = migrate.current(engine, schema=schema)
    if as_json:
        screen.print_json({"ok": True, "revision": revision})
    else:
        screen.out().print(f"The tables are of this version ({revision}).")


@app.command()
def sql(*, db: options.Db = DEFAULT_URL, schema: options.Schema = None) -> None:
    """Print the SQL that makes the tables, for the kind of database in --db; connects nowhere."""
    sys.stdout.write(sql_for(Place(db, schema)))
