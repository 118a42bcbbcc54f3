"""blocks of cards that were all met"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_met"
down_revision = "2026_11_21_plans"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "met_block",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("block", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_met_block_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", "block", name=op.f("pk_met_block")),
    )


def downgrade() -> None:
    op.drop_table("met_block")
