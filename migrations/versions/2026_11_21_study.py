"""study: marks on cards, what the log needs to be replayed, settings"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_study"
down_revision = "2026_11_21_03_sources"
branch_labels = None
depends_on = None


def _state_columns() -> list[sa.Column]:
    return [
        sa.Column("available_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("position", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("parameters_id", sa.String(length=60), nullable=True),
        sa.Column("last_review_id", sa.Integer(), nullable=True),
        sa.Column("suspended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("buried_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("flagged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
    ]


def _review_columns() -> list[sa.Column]:
    return [
        sa.Column("kind", sa.String(length=20), server_default="review", nullable=False),
        sa.Column("phase", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cluster", sa.String(length=80), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("repetition", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("previous_id", sa.Integer(), nullable=True),
        sa.Column("desired_retention", sa.Float(), server_default=sa.text("0.9"), nullable=False),
        sa.Column("request_key", sa.String(length=200), nullable=True),
    ]


_STATE_OF_A_CARD = {"sqlite": "json_extract(memory_before, '$.state')", "postgresql": "(memory_before->>'state')::int"}


def upgrade() -> None:
    for column in _state_columns():
        op.add_column("card_state", column)
    for column in _review_columns():
        op.add_column("review", column)
    _tables()
    phase = _STATE_OF_A_CARD[op.get_bind().dialect.name]
    op.execute(f"UPDATE review SET phase = {phase} WHERE memory_before IS NOT NULL")  # noqa: S608 - our own text
    op.execute("UPDATE card_state SET available_at = due_at")
    op.execute("UPDATE card_state SET parameters_id = 'fsrs-6-default' WHERE memory IS NOT NULL")
    op.execute(
        "UPDATE card_state SET last_review_id = (SELECT max(review.id) FROM review WHERE review.undone_at IS NULL "
        "AND review.learner_id = card_state.learner_id AND review.card_id = card_state.card_id "
        "AND review.revision = card_state.revision) WHERE memory IS NOT NULL"
    )
    op.drop_index("ix_review_time", "review")
    op.drop_index("ix_review_card", "review")
    op.create_index("ix_review_day", "review", ["learner_id", "reviewed_at", "undone_at", "cluster", "phase"])
    op.create_index("ix_review_card", "review", ["learner_id", "card_id", "id"])
    standing = sa.text("undone_at IS NULL")
    op.create_index(
        "ix_review_standing", "review", ["learner_id", "id"], sqlite_where=standing, postgresql_where=standing
    )
    op.create_index("ix_card_state_available", "card_state", ["learner_id", "is_learning", "available_at", "position"])


def _tables() -> None:
    op.create_table(
        "parameter_set",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=60), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_parameter_set_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", "id", name=op.f("pk_parameter_set")),
    )
    op.create_table(
        "study_settings",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("new_per_day", sa.Integer(), nullable=False),
        sa.Column("reviews_per_day", sa.Integer(), nullable=True),
        sa.Column("desired_retention", sa.Float(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_study_settings_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", name=op.f("pk_study_settings")),
    )


def downgrade() -> None:
    op.drop_table("study_settings")
    op.drop_table("parameter_set")
    op.drop_index("ix_card_state_available", "card_state")
    for name in ("ix_review_standing", "ix_review_card", "ix_review_day"):
        op.drop_index(name, "review")
    op.create_index("ix_review_card", "review", ["learner_id", "card_id"])
    op.create_index("ix_review_time", "review", ["learner_id", "reviewed_at"])
    for table, columns in (("review", _review_columns()), ("card_state", _state_columns())):
        with op.batch_alter_table(table) as batch:
            for column in columns:
                batch.drop_column(column.name)
