"""Each run has a digest, so that a damaged one is refused and never told otherwise than it was saved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; runs of before stay without one."""
    op.add_column("runs", sa.Column("sha256", sa.String(64)))
