"""code labs: submissions with their events, and each learner's desk"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_25_code_labs"
down_revision = "2026_11_23_expectations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "code_submission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("lab_id", sa.String(length=20), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("hints_taken", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("detail", sa.String(length=500), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.String(length=64), nullable=True),
        sa.Column("worker", sa.String(length=200), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.JSON(), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_code_submission_learner_id_learner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_code_submission")),
    )
    with op.batch_alter_table("code_submission", schema=None) as batch_op:
        batch_op.create_index("ix_code_submission_queue", ["status", "id"])
        batch_op.create_index("ix_code_submission_learner", ["learner_id", "lab_id", "id"])
    op.create_table(
        "code_chunk",
        sa.Column("submission_id", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["code_submission.id"], name=op.f("fk_code_chunk_submission_id_code_submission")
        ),
        sa.PrimaryKeyConstraint("submission_id", "sequence", name=op.f("pk_code_chunk")),
    )
    op.create_table(
        "code_desk",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("lab_id", sa.String(length=20), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("draft", sa.Text(), nullable=True),
        sa.Column("draft_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("hints_taken", sa.Integer(), nullable=False),
        sa.Column("passed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("passed_with_hints", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_code_desk_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", "lab_id", name=op.f("pk_code_desk")),
    )


def downgrade() -> None:
    op.drop_table("code_desk")
    op.drop_table("code_chunk")
    op.drop_table("code_submission")
