"""What a listing shows stands in its own columns, so that no document is read for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pyrometer.store.summary import headline, median_s
from pyrometer.store.upgrade import upgraded

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns and fill them from the documents."""
    op.add_column("runs", sa.Column("headline", sa.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("median_s", sa.Float))
    op.create_index("runs_by_time", "runs", ["created_at"])
    runs = sa.table(
        "runs",
        sa.column("id"),
        sa.column("kind"),
        sa.column("document", sa.JSON),
        sa.column("headline"),
        sa.column("median_s"),
    )
    connection = op.get_bind()
    for run_id, kind in connection.execute(sa.select(runs.c.id, runs.c.kind)).all():
        document = connection.scalar(sa.select(runs.c.document).where(runs.c.id == run_id)) or {}
        document = upgraded(kind, document)
        filled = {"headline": headline(document), "median_s": median_s(document)}
        connection.execute(sa.update(runs).where(runs.c.id == run_id).values(filled))
