"""runs that were opened from a file"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_opened_runs"
down_revision = "2026_11_23_sweeps"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("opened_from", sa.String(length=200), nullable=True))
        batch_op.add_column(sa.Column("origin", sa.JSON(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_column("origin")
        batch_op.drop_column("opened_from")
