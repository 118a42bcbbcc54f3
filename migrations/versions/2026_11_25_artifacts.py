"""runs: what is kept of them elsewhere"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_25_artifacts"
down_revision = "2026_11_25_code_labs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run", sa.Column("artifacts", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("run", "artifacts")
