"""the guess of the first minute"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_first"
down_revision = "2026_11_22_launch"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "first_guess",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("guess_bytes", sa.Double(), nullable=True),
        sa.Column("guessed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_first_guess_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", name=op.f("pk_first_guess")),
    )


def downgrade() -> None:
    op.drop_table("first_guess")
