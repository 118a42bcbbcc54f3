"""what a worker is of, whether it is drained, which GPUs are taken"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_workers"
down_revision = "2026_11_22_attempts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "served_release",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("release", sa.String(length=60), nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_served_release")),
    )
    op.create_table(
        "gpu_lease",
        sa.Column("uuid", sa.String(length=80), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_gpu_lease_run_id_run")),
        sa.PrimaryKeyConstraint("uuid", name=op.f("pk_gpu_lease")),
    )
    with op.batch_alter_table("worker_presence", schema=None) as batch_op:
        batch_op.add_column(sa.Column("release", sa.String(length=60), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("is_drained", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch_op.add_column(sa.Column("trouble", sa.String(length=500), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("worker_presence", schema=None) as batch_op:
        batch_op.drop_column("trouble")
        batch_op.drop_column("is_drained")
        batch_op.drop_column("release")
    op.drop_table("gpu_lease")
    op.drop_table("served_release")
