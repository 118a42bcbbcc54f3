"""what the interviewer asks on account of an answer"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_reactions"
down_revision = "2026_11_23_opened_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("sitting_answer", schema=None) as batch_op:
        batch_op.add_column(sa.Column("reaction", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("sitting_answer", schema=None) as batch_op:
        batch_op.drop_column("reaction")
