"""how often a run was started"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_attempts"
down_revision = "2026_11_22_first"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"))
    op.execute("UPDATE run SET attempts = 1 WHERE started_at IS NOT NULL")


def downgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_column("attempts")
