"""What Alembic runs: the same options online and offline, in one transaction.

``config.attributes["connection"]`` is used when ``batchmill.store.migrate`` gives one; otherwise
(on the command line) the database is the one that ``BATCHMILL_DATABASE_URL`` names, and the schema
on PostgreSQL the one that ``BATCHMILL_DATABASE_SCHEMA`` names, if it is set.
"""

from __future__ import annotations

import os
from logging.config import fileConfig

from alembic import context
from sqlalchemy import Connection

from batchmill.store import migrate
from batchmill.store.capabilities import capabilities_of
from batchmill.store.engine import create_store_engine
from batchmill.store.schemas import search_path


def address() -> str:
    """The URL, which never passes through the configuration file: that would interpolate a %."""
    given = context.config.attributes.get("url")
    return given or os.environ.get("BATCHMILL_DATABASE_URL") or "sqlite:///batchmill.db"


def named_schema() -> str | None:
    """The schema that the tables are in, None for the default one."""
    if "url" in context.config.attributes:
        return context.config.attributes.get("schema")
    return os.environ.get("BATCHMILL_DATABASE_SCHEMA") or None


def run_offline() -> None:
    """Write SQL instead of executing it."""
    schema = named_schema()
    url = migrate.check_place(address(), schema)
    context.configure(
        url=url,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
        **migrate.environment_options(url.get_backend_name()),
    )
    with context.begin_transaction():
        if schema is not None:
            context.static_output(f"{search_path(schema)};")
        context.run_migrations()


def run_online() -> None:
    """Execute on the connection that was given, or on one of our own under the database's lock."""
    given = context.config.attributes.get("connection")
    if given is not None:
        run_on(given)
        return
    schema = named_schema()
    engine = create_store_engine(migrate.check_place(address(), schema))
    try:
        with migrate.locked(engine, schema) as connection:
            run_on(connection)
    finally:
        engine.dispose()


def run_on(connection: Connection) -> None:
    """Execute inside the transaction that the connection is already in; who began it ends it.

    Where DDL commits, nothing of the run is left to be committed later: whoever gets the lock
    next would not see it yet.
    """
    context.configure(connection=connection, **migrate.environment_options(connection.dialect.name))
    with context.begin_transaction():
        context.run_migrations()
    if not capabilities_of(connection.dialect).ddl_rolls_back:
        connection.exec_driver_sql("COMMIT")


if context.config.cmd_opts is not None and context.config.config_file_name is not None:
    fileConfig(context.config.config_file_name, disable_existing_loggers=False)

if context.is_offline_mode():
    run_offline()
else:
    run_online()
