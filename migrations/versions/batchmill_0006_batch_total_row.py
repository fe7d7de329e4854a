"""The shards of the byte total, and the rows that submits and evictions lock.

Apart from the table, because rows and the version are committed together on every database,
and a table and its rows are not.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "batchmill_0006"
down_revision = "batchmill_0005"
branch_labels = None
depends_on = None

TOTAL = sa.table(
    "batch_total",
    sa.column("shard", sa.Integer),
    sa.column("nbytes", sa.BigInteger),
    sa.column("turns", sa.BigInteger),
)


def upgrade() -> None:
    """Start with eight shards at zero; -1 is the lock of the caps, -2 that of evictions."""
    op.bulk_insert(TOTAL, [{"shard": shard, "nbytes": 0, "turns": 0} for shard in range(-2, 8)])


def downgrade() -> None:
    """Empty the table."""
    op.execute(TOTAL.delete())
