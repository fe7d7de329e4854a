"""The commands, put together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from batchmill.cli import db, reading, run, upkeep, worker
from batchmill.cli.demo import command as demo
from batchmill.cli.errors import Funnel

app = typer.Typer(
    cls=Funnel,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Batch jobs in a database: fetch lists of targets, look at results, keep house.",
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"batchmill {version('batchmill')}")
    except PackageNotFoundError:
        typer.echo("batchmill (not installed)")
    raise typer.Exit


@app.callback()
def _global(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


app.command()(run.run)
app.command()(reading.jobs)
app.command()(reading.show)
app.command()(reading.results)
app.command()(upkeep.cancel)
app.command()(upkeep.delete)
app.command()(reading.stats)
app.command()(upkeep.sweep)
app.command()(upkeep.evict)
app.command()(worker.worker)
app.add_typer(db.app, name="db")
app.command("demo")(demo.demo)
