"""Targets, in order within their job; the result stands last in the row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "batchmill_0002"
down_revision = "batchmill_0001"
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


def body() -> sa.types.TypeEngine[str]:
    """A text of any length; frozen here as this revision made it."""
    return sa.Text().with_variant(mysql.LONGTEXT(collation="utf8mb4_nopad_bin"), "mysql", "mariadb")


def upgrade() -> None:
    """Create the table."""
    # Where DDL can't be rolled back, a step that was cut off must be able to run again.
    again = not op.get_context().impl.transactional_ddl
    op.create_table(
        "batch_target",
        sa.Column("job_id", name(64), nullable=False),
        sa.Column("idx", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("url", body(), nullable=False),
        sa.Column("options", body(), nullable=False),
        sa.Column("status", name(16), nullable=False),
        sa.Column("error", body(), nullable=True),
        sa.Column("hint", body(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("lost", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("nbytes", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("result", body(), nullable=True),
        sa.CheckConstraint(
            "status = 'pending' OR status = 'running' OR status = 'done' OR status = 'failed'",
            name=op.f("batch_target_status_ck"),
        ),
        sa.ForeignKeyConstraint(
            ["job_id"], ["batch_job.id"], name=op.f("batch_target_job_id_fk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "idx", name=op.f("batch_target_pk")),
        if_not_exists=again,
        **INNODB,
    )


def downgrade() -> None:
    """Drop the table."""
    again = not op.get_context().impl.transactional_ddl
    op.drop_table("batch_target", if_exists=again)
