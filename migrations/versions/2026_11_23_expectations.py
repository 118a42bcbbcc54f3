"""the level a candidate expects before the debrief"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_expectations"
down_revision = "2026_11_23_reactions"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("sitting", schema=None) as batch_op:
        batch_op.add_column(sa.Column("expected_level", sa.String(length=20), nullable=True))
    op.execute("UPDATE sitting SET expected_level = '' WHERE closed_at IS NOT NULL")  # their debrief was seen


def downgrade() -> None:
    with op.batch_alter_table("sitting", schema=None) as batch_op:
        batch_op.drop_column("expected_level")
