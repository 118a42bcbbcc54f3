"""Alembic's entry: migrates the database the settings name, or the connection it is handed."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, MetaData

from app.core.db import Base, UtcDateTime, open_database


def _render_item(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Migrations must outlive our own types: write the plain column instead."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def _migrate(connection: Connection, metadata: MetaData) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",  # SQLite cannot ALTER most things in place
        render_item=_render_item,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    _migrate(given, Base.metadata)  # for its names of constraints: what the tables are now, an upgrade need not know
else:
    from app.core.settings import settings
    from app.models import METADATA

    engine = open_database(settings().sqlalchemy_url).engine
    with engine.execution_options(writes=True).begin() as own:
        _migrate(own, METADATA)
