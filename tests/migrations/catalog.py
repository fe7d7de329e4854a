"""What a server's catalog says of our tables, as text: one line a column, constraint and index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

from batchmill.store import metadata, migrate

Lines = dict[str, list[str]]

_PG_COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attcollation <> t.typcollation THEN o.collname END,
    a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation o ON o.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
ORDER BY c.relname, a.attnum
"""
# Not contype n: from PostgreSQL 18 on, NOT NULL is a constraint too.
_PG_CONSTRAINTS = """
SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.connamespace = quote_ident(current_schema())::regnamespace AND k.contype <> 'n'
ORDER BY k.conname
"""
_PG_INDEXES = """
SELECT c.relname, replace(pg_get_indexdef(i.indexrelid),
    ' ON ' || quote_ident(current_schema()) || '.', ' ON ')
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
    AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)
ORDER BY 2
"""
_PG_SEQUENCES = """
SELECT sequencename, data_type, start_value, increment_by, max_value, cycle, cache_size
FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1
"""
_MARIADB_TABLES = """
SELECT table_name, table_type, engine, row_format
FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name
"""
_MARIADB_COLUMNS = """
SELECT table_name, column_name, column_type, collation_name, is_nullable, column_default, extra
FROM information_schema.columns WHERE table_schema = database()
ORDER BY table_name, ordinal_position
"""
_MARIADB_INDEXES = """
SELECT table_name, index_name, non_unique,
    group_concat(concat(column_name, coalesce(concat('(', sub_part, ')'), ''))
        ORDER BY seq_in_index SEPARATOR ', ')
FROM information_schema.statistics WHERE table_schema = database()
GROUP BY table_name, index_name, non_unique ORDER BY table_name, index_name
"""
_MARIADB_CHECKS = """
SELECT table_name, constraint_name, check_clause FROM information_schema.check_constraints
WHERE constraint_schema = database() ORDER BY table_name, constraint_name
"""
_MARIADB_FOREIGN_KEYS = """
SELECT r.table_name, r.constraint_name, k.column_name, k.referenced_table_name,
    k.referenced_column_name, r.delete_rule
FROM information_schema.referential_constraints r
JOIN information_schema.key_column_usage k
    ON k.constraint_schema = r.constraint_schema AND k.constraint_name = r.constraint_name
WHERE r.constraint_schema = database() ORDER BY r.table_name, r.constraint_name
"""


def dump(connection: Connection) -> str:
    """The whole schema that plain names are in; nothing of a host's may be there."""
    postgresql = connection.dialect.name == "postgresql"
    made = _postgresql(connection) if postgresql else _mariadb(connection)
    return "\n".join("\n    ".join([head, *lines]) for head, lines in sorted(made.items())) + "\n"


def _rows(connection: Connection, sql: str) -> Iterable[Any]:
    return connection.execute(text(sql)).all()


def _postgresql(connection: Connection) -> Lines:
    made: Lines = defaultdict(list)
    for table, name, kind, collation, required, default in _rows(connection, _PG_COLUMNS):
        parts = [name, kind, f'COLLATE "{collation}"' if collation else ""]
        parts += ["NOT NULL" if required else "", f"DEFAULT {default}" if default else ""]
        made[f"TABLE {table}"].append(" ".join(filter(None, parts)))
    for table, name, definition in _rows(connection, _PG_CONSTRAINTS):
        made[f"TABLE {table}"].append(f"{name} {definition}")
    for table, definition in _rows(connection, _PG_INDEXES):
        made[f"TABLE {table}"].append(definition)
    for name, kind, start, step, most, cycle, cache in _rows(connection, _PG_SEQUENCES):
        made[f"SEQUENCE {name}"] = [f"{kind} {start} by {step} to {most} {cycle=} {cache=}"]
    return made


def _mariadb(connection: Connection) -> Lines:
    made: Lines = {}
    heads = {}
    for table, kind, engine, row_format in _rows(connection, _MARIADB_TABLES):
        # The sequence and Alembic's version table are in the server's default engine.
        stored = f" {engine} {row_format}" if table in metadata.tables else ""
        heads[table] = f"{kind} {table}{stored}"
        made[heads[table]] = []
    for table, name, kind, collation, nullable, default, extra in _rows(
        connection, _MARIADB_COLUMNS
    ):
        # Alembic makes the version table, with the database's own collation.
        collated = f"COLLATE {collation}" if collation and table != migrate.VERSION_TABLE else ""
        parts = [name, kind, collated, "NOT NULL" if nullable == "NO" else ""]
        parts += [f"DEFAULT {default}" if default is not None else "", extra]
        made[heads[table]].append(" ".join(filter(None, parts)))
    for table, name, definition in _rows(connection, _MARIADB_CHECKS):
        made[heads[table]].append(f"{name} CHECK ({definition})")
    for table, name, column, other, key, rule in _rows(connection, _MARIADB_FOREIGN_KEYS):
        made[heads[table]].append(f"{name} ({column}) REFERENCES {other} ({key}) DELETE {rule}")
    for table, name, several, columns in _rows(connection, _MARIADB_INDEXES):
        made[heads[table]].append(f"{'INDEX' if several else 'UNIQUE'} {name} ({columns})")
    return made
