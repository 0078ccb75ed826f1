"""Runs, and the artifacts that belong to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("command", sa.JSON, nullable=False),
        sa.Column("commit_sha", sa.String(64)),
        sa.Column("dirty", sa.Boolean),
        sa.Column("environment", sa.JSON, nullable=False),
        sa.Column("fingerprint", sa.String(128), nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
    )
    op.create_table(
        "artifacts",
        sa.Column("run_id", sa.String(40), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
