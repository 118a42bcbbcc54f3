"""items as they were asked"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_03_sources"
down_revision = "2026_11_21_02_second"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "item_source",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("item_id", sa.String(length=20), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_item_source")),
    )
    for table in ("variant", "rubric_answer"):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("source", sa.String(length=64), nullable=True))


def downgrade() -> None:
    for table in ("variant", "rubric_answer"):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column("source")
    op.drop_table("item_source")
