"""workers: since when one is drained"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_drained_at"
down_revision = "2026_11_25_artifacts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("worker_presence", sa.Column("drained_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("worker_presence", "drained_at")
