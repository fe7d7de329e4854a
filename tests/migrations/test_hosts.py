"""A host application that has an Alembic of its own, side by side with ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from alembic import command, context, op
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Column, ForeignKey, Integer, MetaData, String, Table, inspect, text

from batchmill.store import migrate
from tests.migrations.places import Place

HOST_CONVENTION = {
    "pk": "host_pk_%(table_name)s",
    "fk": "host_fk_%(table_name)s_%(column_0_name)s",
    "ix": "host_ix_%(column_0_label)s",
    "ck": "host_ck_%(table_name)s_%(constraint_name)s",
    "uq": "host_uq_%(table_name)s_%(column_0_name)s",
}
HOST_ENV = """
from alembic import context
from sqlalchemy import MetaData

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=MetaData(naming_convention=context.config.attributes["convention"]),
    version_table="host_version",
)
with context.begin_transaction():
    context.run_migrations()
"""


def host_tables() -> MetaData:
    """An application's own tables, one of which refers to ours by a plain column."""
    host = MetaData(naming_convention=HOST_CONVENTION)
    Table("account", host, Column("id", Integer, primary_key=True), Column("name", String(40)))
    Table(
        "batch_order",
        host,
        Column("id", Integer, primary_key=True),
        Column("account_id", ForeignKey("account.id"), index=True),
        Column("job_id", String(64)),
    )
    return host


@pytest.mark.parametrize("convention", [{}, HOST_CONVENTION], ids=["none", "host's"])
def test_up_down_up_in_a_hosts_alembic(
    convention: dict[str, str], place: Place, tmp_path: Path
) -> None:
    """Run by a host's env.py, whatever its naming convention: the same schema (cases.md S11)."""
    config = host_config(tmp_path, HOST_ENV)
    config.set_main_option("version_locations", "batchmill.migrations:versions")
    config.attributes["convention"] = convention
    for _ in range(2):
        in_one_transaction(place, config, command.upgrade, "batchmill@head")
        assert tables_of(place.dump()) == tables_of(place.kept())
        in_one_transaction(place, config, command.downgrade, "base")


def host_config(folder: Path, env: str) -> Config:
    (folder / "env.py").write_text(env)
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "newline")
    return config


def tables_of(dump: str) -> list[str]:
    """A dump, but for version tables, whoever's they are."""
    blocks = re.split(r"\n(?=\S)", dump.strip())
    found = [block for block in blocks if "_version" not in block and "version_num" not in block]
    return [block for block in found if block not in {")", ");"}]


def in_one_transaction(place: Place, config: Config, run: Any, revision: str) -> None:
    with place.inside() as connection:
        config.attributes["connection"] = connection
        run(config, revision)


NESTED_ENV = """
from alembic import context
from batchmill.store import migrate

connection = context.config.attributes["connection"]
migrate.upgrade(connection, schema=context.config.attributes["schema"])
context.configure(connection=connection, version_table="host_version")
with context.begin_transaction():
    context.run_migrations()
"""
NESTED_REVISION = """
import sqlalchemy as sa
from alembic import context, op
from batchmill.store import migrate

revision = "host_0001"
down_revision = None

def upgrade():
    op.create_table("first", sa.Column("id", sa.Integer))
    migrate.upgrade(op.get_bind(), schema=context.config.attributes["schema"])
    op.create_table("second", sa.Column("id", sa.Integer))
    migrate.verify(op.get_bind(), schema=context.config.attributes["schema"])
"""


@pytest.mark.parametrize("where", ["env", "revision"])
def test_upgrade_inside_of_a_hosts_run(where: str, place: Place, tmp_path: Path) -> None:
    """Called by a host's env.py or by a revision of the host's, the host's own run goes on."""
    env = NESTED_ENV if where == "env" else HOST_ENV
    config = host_config(tmp_path, env)
    (tmp_path / "versions").mkdir()
    if where == "revision":
        (tmp_path / "versions" / "host_0001.py").write_text(NESTED_REVISION)
    config.attributes |= {"schema": place.schema, "convention": {}}
    engine = place.engine()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    migrate.verify(place.engine(), schema=place.schema)
    assert place.totals() == [(shard, 0, 0) for shard in range(-2, 8)]
    made = set(inspect(engine).get_table_names())
    assert made >= ({"first", "second"} if where == "revision" else set())
    assert (context._proxy, op._proxy) == (None, None)  # type: ignore[attr-defined]


def host_differences(place: Place, **options: Any) -> list[Any]:
    """What a host's autogenerate would do."""
    host = host_tables()
    with place.engine().connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), host))


@pytest.mark.parametrize("schemas", [False, True], ids=["one schema", "all schemas"])
def test_a_hosts_autogenerate_leaves_ours_alone(schemas: bool, place: Place) -> None:
    """With include_name a host sees no operation on our tables, in no schema (cases.md 17)."""
    host_tables().create_all(place.engine())
    migrate.upgrade(place.engine(), schema=place.schema)
    options = {"include_name": migrate.include_name, "include_schemas": schemas}
    if schemas and place.kind == "mariadb":  # there it compares all databases of the server
        options["include_name"] = of_one_database
    assert host_differences(place, **options) == []


def of_one_database(name: str | None, kind: Any, parents: Any) -> bool:
    return migrate.include_name(name, kind, parents) and (kind != "schema" or name is None)


def test_without_the_filter_a_host_would_drop_ours(place: Place) -> None:
    """The filter is what keeps them: without it autogenerate would drop all our tables."""
    host_tables().create_all(place.engine())
    migrate.upgrade(place.engine(), schema=place.schema)
    operations = host_differences(place, include_schemas=place.kind == "schema")
    dropped = {op[1].name for op in operations if op[0] == "remove_table"}
    assert dropped == set(migrate.OUR_TABLES)


def test_our_check_leaves_a_hosts_tables_alone(place: Place) -> None:
    """Our own autogenerate sees no operation on a host's tables (cases.md 17)."""
    migrate.upgrade(place.engine(), schema=place.schema)
    with place.inside() as connection:
        host_tables().create_all(connection)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
    assert place.differences() == []


def test_the_filter_knows_tables_only() -> None:
    """The filter speaks of tables: a host's index or column may be named as one of ours."""
    parents: Any = {"table_name": "account"}
    assert not migrate.include_name("batch_job", "table", parents)
    assert not migrate.include_name(migrate.VERSION_TABLE, "table", parents)
    assert migrate.include_name("batch_job", "column", parents)
    assert migrate.include_name("account", "table", parents)
    assert migrate.include_name(None, "schema", parents)
