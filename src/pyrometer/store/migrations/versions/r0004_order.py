"""Runs are numbered as they are saved, so that their order does not depend on a clock."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column; runs of before are numbered by their dates, of which they have nothing better."""
    op.add_column("runs", sa.Column("number", sa.BigInteger))
    runs = sa.table("runs", sa.column("id"), sa.column("created_at"), sa.column("number"))
    connection = op.get_bind()
    in_order = connection.scalars(sa.select(runs.c.id).order_by(runs.c.created_at, runs.c.id)).all()
    for number, run_id in enumerate(in_order, 1):
        connection.execute(sa.update(runs).where(runs.c.id == run_id).values(number=number))
    op.create_index("runs_by_number", "runs", ["number"], unique=True)
