"""Jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "batchmill_0001"
down_revision = None
branch_labels = ("batchmill",)
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
    """Create the table and its indexes."""
    # Where DDL can't be rolled back, a step that was cut off must be able to run again.
    again = not op.get_context().impl.transactional_ddl
    op.create_table(
        "batch_job",
        sa.Column("id", name(64), nullable=False),
        sa.Column("caller", name(255), nullable=False),
        sa.Column("caller_class", name(255), nullable=False),
        sa.Column("idem_key", name(255), nullable=False),
        sa.Column("status", name(16), nullable=False),
        sa.Column("error", body(), nullable=False),
        sa.Column("targets_total", sa.BigInteger(), nullable=False),
        sa.Column("targets_done", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.BigInteger(), nullable=False),
        sa.Column("nbytes", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.CheckConstraint(
            "status = 'queued' OR status = 'running' OR status = 'done'"
            " OR status = 'partial' OR status = 'failed' OR status = 'cancelled'",
            name=op.f("batch_job_status_ck"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("batch_job_pk")),
        if_not_exists=again,
        **INNODB,
    )
    op.create_index(
        op.f("batch_job_caller_idem_key_created_at_id_ix"),
        "batch_job",
        ["caller", "idem_key", "created_at", "id"],
        if_not_exists=again,
    )
    op.create_index(
        op.f("batch_job_caller_created_at_id_ix"),
        "batch_job",
        ["caller", "created_at", "id"],
        if_not_exists=again,
    )
    op.create_index(
        op.f("batch_job_lease_id_ix"), "batch_job", ["lease", "id"], if_not_exists=again
    )
    live = sa.text("status IN ('queued', 'running')")
    op.create_index(
        op.f("batch_job_status_caller_ix"),
        "batch_job",
        ["status", "caller"],
        if_not_exists=again,
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_index(
        op.f("batch_job_created_at_id_ix"), "batch_job", ["created_at", "id"], if_not_exists=again
    )


def downgrade() -> None:
    """Drop the table."""
    again = not op.get_context().impl.transactional_ddl
    op.drop_table("batch_job", if_exists=again)
