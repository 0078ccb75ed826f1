"""Runs of a folder, read without SQLAlchemy, which takes longer to import than a listing to print.

Only what is plain is read here: a store of the newest schema in a folder, and a run that is as it was saved. Of all else
`None` is given; then `pyrometer.store.store.Store` answers, or says what is wrong.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.errors import InputError, StoreError
from pyrometer.store.place import Location, is_server
from pyrometer.store.rows import REVISIONS, run_of
from pyrometer.store.run import Run, RunSummary
from pyrometer.store.sqlite import DATABASE, connect

WAIT_S = 1.0
"""For a writer; `Store` waits longer."""

_ODD = (
    sqlite3.Error,
    OSError,
    TypeError,
    LookupError,
    UnicodeError,
    msgspec.MsgspecError,
    InputError,
    StoreError,
)
_JSON = ("command", "environment", "document")


def read_run(location: Location, reference: str) -> Run | None:
    """What `Store.load` gives for an id, its beginning, or `last`."""
    begins = reference.replace("/", "//").replace("%", "/%").replace("_", "/_") + "%"
    chosen = "" if reference == "last" else "WHERE id LIKE ? ESCAPE '/' "
    query = f"SELECT * FROM runs {chosen}ORDER BY number DESC LIMIT {1 if reference == 'last' else 2}"  # noqa: S608 - only constants
    with suppress(*_ODD), _opened(location) as connection:
        found = connection.execute(query, (begins,) if chosen else ()).fetchall() if reference else []
        if len(found) == 1:
            files = connection.execute("SELECT * FROM artifacts WHERE run_id = ?", (found[0]["id"],))
            where = str(Path(location).absolute() / DATABASE)
            return run_of(_plain(found[0]), list(map(dict, files)), where)
    return None


def read_summaries(
    location: Location, *, kind: str | None = None, limit: int | None = None
) -> list[RunSummary] | None:
    """What `Store.runs` gives."""
    columns = ", ".join(RunSummary.__struct_fields__)
    chosen = "" if kind is None else "WHERE kind = ? "
    query = f"SELECT {columns} FROM runs {chosen}ORDER BY number DESC LIMIT ?"  # noqa: S608 - only constants
    values = (*(() if kind is None else (kind,)), -1 if limit is None else limit)
    with suppress(*_ODD), _opened(location) as connection:
        return [msgspec.convert(_plain(row), RunSummary) for row in connection.execute(query, values)]
    return None


@contextmanager
def _opened(location: Location) -> Iterator[sqlite3.Connection]:
    database = Path(location) / DATABASE
    if is_server(location) or not database.exists():
        raise StoreError(f"{location}: not a folder with runs; Store says so, and what to do")
    with closing(connect(database.absolute(), WAIT_S)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN")
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        if revision is None or revision[0] != REVISIONS[-1]:
            raise StoreError(
                f"{database}: has another schema than {REVISIONS[-1]}; Store brings it up to date"
            )
        yield connection


def _plain(row: sqlite3.Row) -> dict[str, Any]:
    """A row as SQLAlchemy gives it: JSON decoded, and truth instead of 0 and 1."""
    plain = dict(row)
    for name in _JSON:
        if name in plain:
            plain[name] = msgspec.json.decode(plain[name])
    plain["dirty"] = None if plain["dirty"] is None else bool(plain["dirty"])
    return plain
