"""The byte total, in shards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "batchmill_0005"
down_revision = "batchmill_0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    # Where DDL can't be rolled back, a step that was cut off must be able to run again.
    again = not op.get_context().impl.transactional_ddl
    op.create_table(
        "batch_total",
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("nbytes", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("turns", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("shard", name=op.f("batch_total_pk")),
        if_not_exists=again,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("batch_total")
