"""own cards, reported errors and import reports"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_own"
down_revision = "2026_11_21_study"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "own_card",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("card_id", sa.String(length=20), nullable=False),
        sa.Column("guid", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("deck", sa.String(length=200), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("sections", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_own_card_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", "card_id", name=op.f("pk_own_card")),
    )
    with op.batch_alter_table("own_card", schema=None) as batch_op:
        batch_op.create_index("ix_own_card_deck", ["learner_id", "deck"], unique=False)

    op.create_table(
        "own_shelf",
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_own_shelf_learner_id_learner")),
        sa.PrimaryKeyConstraint("learner_id", name=op.f("pk_own_shelf")),
    )
    op.create_table(
        "card_report",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("card_id", sa.String(length=20), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_card_report_learner_id_learner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_card_report")),
    )
    with op.batch_alter_table("card_report", schema=None) as batch_op:
        batch_op.create_index("ix_card_report_learner", ["learner_id", "id"], unique=False)

    op.create_table(
        "import_report",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("file_name", sa.String(length=200), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["learner_id"], ["learner.id"], name=op.f("fk_import_report_learner_id_learner")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_report")),
    )
    with op.batch_alter_table("import_report", schema=None) as batch_op:
        batch_op.create_index("ix_import_report_learner", ["learner_id", "id"], unique=False)


def downgrade() -> None:
    for table in ("import_report", "card_report", "own_shelf", "own_card"):
        op.drop_table(table)
