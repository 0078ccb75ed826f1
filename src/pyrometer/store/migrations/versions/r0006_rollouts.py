"""Rollouts: their states, decisions and counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the three tables."""
    op.create_table(
        "rollouts",
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "rollout_decisions",
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "rollout_counts",
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("arm", sa.String(8), primary_key=True),
        sa.Column("reporter", sa.String(120), primary_key=True),
        sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
    )
