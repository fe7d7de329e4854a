"""Turn numbers, where the database has sequences; elsewhere they are counted in batch_total."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence, DropSequence

revision = "batchmill_0007"
down_revision = "batchmill_0006"
branch_labels = None
depends_on = None

NUMBER = sa.Sequence("batch_turn_number")


def has_sequences() -> bool:
    """True but for SQLite; offline, a dialect doesn't know what its server can do."""
    return op.get_context().dialect.name != "sqlite"


def upgrade() -> None:
    """Create the sequence."""
    if has_sequences():
        op.execute(CreateSequence(NUMBER, if_not_exists=True))


def downgrade() -> None:
    """Drop the sequence."""
    if has_sequences():
        op.execute(DropSequence(NUMBER, if_exists=True))
