"""Files and marks have tables where a store has no folder."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create both tables on a server."""
    if op.get_bind().dialect.name != "postgresql":
        return
    op.create_table(
        "blobs",
        sa.Column("run_id", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "marks",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
    )
