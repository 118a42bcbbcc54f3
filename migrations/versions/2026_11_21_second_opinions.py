"""second opinions on free answers"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_02_second"
down_revision = "2026_11_21_01"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("rubric_answer", schema=None) as batch_op:
        batch_op.add_column(sa.Column("second", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("rubric_answer", schema=None) as batch_op:
        batch_op.drop_column("second")
