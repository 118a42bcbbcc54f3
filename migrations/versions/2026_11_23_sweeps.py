"""what a learner calls a run and notes of it; runs that were submitted as one"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_sweeps"
down_revision = "2026_11_23_workers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sweep",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("knobs", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_sweep_learner_id_learner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
    )
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("name", sa.String(length=80), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("note", sa.String(length=2000), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("sweep_id", sa.Integer(), nullable=True))
        batch_op.create_foreign_key(op.f("fk_run_sweep_id_sweep"), "sweep", ["sweep_id"], ["id"])
        batch_op.create_index("ix_run_sweep", ["sweep_id"])


def downgrade() -> None:
    with op.batch_alter_table("run", schema=None) as batch_op:
        batch_op.drop_index("ix_run_sweep")
        batch_op.drop_constraint(op.f("fk_run_sweep_id_sweep"), type_="foreignkey")
        batch_op.drop_column("sweep_id")
        batch_op.drop_column("note")
        batch_op.drop_column("name")
    op.drop_table("sweep")
