"""interview plans and fitted parameters"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_plans"
down_revision = "2026_11_21_own"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "interview_plan",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("minutes_per_day", sa.Integer(), nullable=False),
        sa.Column("started_on", sa.Date(), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("strategy", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("card_order", sa.JSON(), nullable=False),
        sa.Column("planned_day", sa.Integer(), nullable=True),
        sa.Column("new_today", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_interview_plan_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", name=op.f("pk_interview_plan")),
    )
    op.create_table(
        "parameter_fit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reviews", sa.Integer(), nullable=False),
        sa.Column("held_out", sa.Integer(), nullable=True),
        sa.Column("parameters", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("parameters_id", sa.String(length=60), nullable=True),
        sa.Column("default_loss", sa.Float(), nullable=True),
        sa.Column("fitted_loss", sa.Float(), nullable=True),
        sa.Column("difference_error", sa.Float(), nullable=True),
        sa.Column("is_used", sa.Boolean(), nullable=False),
        sa.Column("failure", sa.String(length=400), nullable=True),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_parameter_fit_learner_id_learner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_parameter_fit")),
    )
    op.create_index("ix_parameter_fit_learner", "parameter_fit", ["learner_id", "id"])
    unfinished = sa.text("finished_at IS NULL")
    op.create_index(
        "uq_parameter_fit_open",
        "parameter_fit",
        ["learner_id"],
        unique=True,
        sqlite_where=unfinished,
        postgresql_where=unfinished,
    )


def downgrade() -> None:
    op.drop_table("parameter_fit")
    op.drop_table("interview_plan")
