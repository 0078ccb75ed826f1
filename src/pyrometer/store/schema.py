"""The tables, in types and statements that SQLite and PostgreSQL share; changed only through `migrations`."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)

from pyrometer.errors import StoreError
from pyrometer.store.rows import REVISIONS

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("created_at", String(32), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("target", Text, nullable=False),
    Column("command", JSON, nullable=False),
    Column("commit_sha", String(64)),
    Column("dirty", Boolean),
    Column("environment", JSON, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    Column("document", JSON, nullable=False),
    Column("headline", Text, nullable=False, server_default=""),
    Column("median_s", Float),
    Column("sha256", String(64)),
    Column("number", BigInteger),
    Index("runs_by_time", "created_at"),
    Index("runs_by_number", "number", unique=True),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("run_id", String(40), ForeignKey("runs.id"), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("path", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
)

# Rollouts: the state of each name, replaced as one piece; what was decided; and what processes counted.
rollouts = Table(
    "rollouts",
    metadata,
    Column("name", String(120), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
)

rollout_decisions = Table(
    "rollout_decisions",
    metadata,
    Column("name", String(120), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
)

rollout_counts = Table(
    "rollout_counts",
    metadata,
    Column("name", String(120), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("arm", String(8), primary_key=True),
    Column("reporter", String(120), primary_key=True),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
)

# Files and marks of stores on a server; a folder keeps them as files.
server_metadata = MetaData()

blobs = Table(
    "blobs",
    server_metadata,
    Column("run_id", String(40), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

marks = Table(
    "marks",
    server_metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
)

_version = Table("alembic_version", MetaData(), Column("version_num", String(32)))


def is_current(connection: Connection) -> bool:
    """Whether the tables are as this version wants them; false for an empty or an older database.

    Raises:
        StoreError: the tables were made by a newer version.
    """
    if not inspect(connection).has_table(_version.name):
        return False
    scalar = connection.scalar(select(_version.c.version_num))
    if scalar is not None and scalar not in REVISIONS:
        raise StoreError(
            f"the store has schema {scalar}, this Pyrometer knows {REVISIONS[-1]} and earlier; "
            "upgrade Pyrometer, or pass --store DIR"
        )
    return scalar == REVISIONS[-1]


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest revision, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "pyrometer.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
