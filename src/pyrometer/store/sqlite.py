"""The one place that knows that the database is SQLite: how it is opened, and how a transaction begins."""

from __future__ import annotations

import os
import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

if TYPE_CHECKING:  # takes longer to import than a listing to print
    from sqlalchemy import Connection, Engine

DATABASE = "runs.db"
"""Its name in the folder of a store."""

# Every commit reaches the disk before it returns: what was reported as saved survives a power loss.
_PRAGMAS = ("synchronous=FULL", "foreign_keys=ON")


def sqlite_engine(database: Path, *, wait_s: float) -> Engine:
    """An engine for this file, which is created when it is missing.

    Transactions wait up to `wait_s` for other writers. A connection that means to write says so by
    `execution_options(writes=True)`: it takes the write lock at once, because a lock that is only wanted halfway
    through a transaction cannot be waited for.
    """
    from sqlalchemy import NullPool, create_engine, event

    engine = create_engine(
        "sqlite://",
        creator=partial(connect, database, wait_s),
        poolclass=NullPool,
        json_serializer=lambda value: msgspec.json.encode(value).decode(),
        json_deserializer=msgspec.json.decode,
    )
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def connect(database: Path, wait_s: float) -> sqlite3.Connection:
    """A connection to this file, which waits so long for other writers."""
    # No isolation level: transactions begin where `_begin` says, not where the driver guesses.
    connection = sqlite3.connect(_uri(database), uri=True, timeout=wait_s, isolation_level=None)
    try:
        _prepare(connection, wait_s)
    except BaseException:
        connection.close()
        raise
    return connection


def _uri(database: Path) -> str:
    uri = f"file:{quote(str(database))}"
    writable = not database.exists() or (os.access(database, os.W_OK) and os.access(database.parent, os.W_OK))
    if writable:
        return uri
    # A write-ahead log cannot be opened in a folder that is read-only, unless SQLite may assume that nobody writes.
    log = database.with_name(f"{database.name}-wal")
    return f"{uri}?mode=ro" if log.exists() and log.stat().st_size else f"{uri}?mode=ro&immutable=1"


def _prepare(connection: sqlite3.Connection, wait_s: float) -> None:
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    give_up = time.monotonic() + wait_s
    # Two processes that create the file: SQLite answers "locked" at once here, whatever the timeout.
    while not _log_ahead(connection, last_try=time.monotonic() > give_up):
        time.sleep(0.02)


def _log_ahead(connection: sqlite3.Connection, *, last_try: bool) -> bool:
    try:
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            # Possible in a new file only: pruning gives space back to the disk.
            connection.execute("PRAGMA auto_vacuum=FULL")
        connection.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        if last_try or "locked" not in str(error):
            raise
        return False
    return True
