"""The rotation: one row for each live job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "batchmill_0003"
down_revision = "batchmill_0002"
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
    """Create the table and its indexes."""
    # Where DDL can't be rolled back, a step that was cut off must be able to run again.
    again = not op.get_context().impl.transactional_ddl
    op.create_table(
        "batch_turn",
        sa.Column("job_id", name(64), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("next_idx", sa.Integer(), nullable=False),
        sa.Column("targets_failed", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("ready_at", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("busy_since", sa.BigInteger(), nullable=True),
        sa.Column("queue", name(255), nullable=False),
        sa.Column("home", name(64), nullable=True),
        sa.Column("holder", name(64), nullable=True),
        sa.Column("token", name(64), nullable=True),
        sa.Column("held_until", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"], ["batch_job.id"], name=op.f("batch_turn_job_id_fk"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("batch_turn_pk")),
        if_not_exists=again,
        **INNODB,
    )
    op.create_index(
        op.f("batch_turn_holder_queue_turn_ix"),
        "batch_turn",
        ["holder", "queue", "turn"],
        if_not_exists=again,
    )
    op.create_index(op.f("batch_turn_home_ix"), "batch_turn", ["home"], if_not_exists=again)


def downgrade() -> None:
    """Drop the table."""
    again = not op.get_context().impl.transactional_ddl
    op.drop_table("batch_turn", if_exists=again)
