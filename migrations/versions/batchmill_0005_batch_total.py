"""The byte total, in shards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "batchmill_0005"
down_revision = "batchmill_0004"
branch_labels = None
depends_on = None

# A transactional engine, and rows whose indexes may be as long as ours, whatever the server's
# defaults are.
INNODB = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("row_format", "DYNAMIC"))
}


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
        **INNODB,
    )


def downgrade() -> None:
    """Drop the table."""
    again = not op.get_context().impl.transactional_ddl
    op.drop_table("batch_total", if_exists=again)
