"""Runners, and when each was last seen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "batchmill_0004"
down_revision = "batchmill_0003"
branch_labels = None
depends_on = None

# A transactional engine, and rows whose indexes may be as long as ours, whatever the server's
# defaults are.
INNODB = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("row_format", "DYNAMIC"))
}


def name(length: int) -> sa.types.TypeEngine[str]:
    """A bounded text that compares by bytes; frozen here as this revision made it."""
    return (
        sa.String(length)
        .with_variant(sa.String(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, collation="utf8mb4_nopad_bin"), "mysql", "mariadb")
    )


def upgrade() -> None:
    """Create the table."""
    # Where DDL can't be rolled back, a step that was cut off must be able to run again.
    again = not op.get_context().impl.transactional_ddl
    op.create_table(
        "batch_runner",
        sa.Column("id", name(64), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("hold_for", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("id", name=op.f("batch_runner_pk")),
        if_not_exists=again,
        **INNODB,
    )


def downgrade() -> None:
    """Drop the table."""
    again = not op.get_context().impl.transactional_ddl
    op.drop_table("batch_runner", if_exists=again)
