"""how a run's ranks were started"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_launch"
down_revision = "2026_11_22_met"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("launch", sa.String(length=20), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_column("launch")
