"""The first shard of the byte total.

Apart from the table, because a row and the version are committed together on every database,
and a table and its row are not.
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
    """Start with one shard at zero."""
    op.bulk_insert(TOTAL, [{"shard": 0, "nbytes": 0, "turns": 0}])


def downgrade() -> None:
    """Empty the table."""
    op.execute(TOTAL.delete())
