"""Where runs are kept: a folder with a database of runs and, beside it, the files that belong to them.

::

    .pyrometer/
      .gitignore              *
      runs.db                 SQLite, write-ahead log
      artifacts/<run id>/…    reports and other files

A run that `save` returned survives a kill and a power loss, with its files. A writer that is killed earlier leaves
at most files that belong to no run, which `prune` removes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, RowMapping, Text, bindparam, cast, delete, func, insert, select
from sqlalchemy.exc import DBAPIError

from pyrometer.errors import InputError, StoreError
from pyrometer.quantity import Seconds
from pyrometer.record import from_dict, to_dict
from pyrometer.store import schema
from pyrometer.store.artifacts import (
    artifact_bytes,
    find_orphans,
    remove_artifacts,
    sync_folder,
    write_artifacts,
)
from pyrometer.store.failure import store_errors
from pyrometer.store.run import DamagedRunError, Pruned, Run, RunSummary, created_at
from pyrometer.store.sqlite import sqlite_engine
from pyrometer.store.upgrade import upgraded

WAIT_S = 60.0
_ORPHAN_AGE_S = 3600.0
_AT_ONCE = 500  # variables that a statement of the oldest SQLite takes, and to spare
_NEWEST_FIRST = schema.runs.c.number.desc()
_SUMMARY = [schema.runs.c[field] for field in RunSummary.__struct_fields__]


class Store:
    """Runs in one folder; any number of processes may use it at the same time."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder = folder
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._artifacts = folder / "artifacts"

    @classmethod
    def open(cls, location: Path | str, *, create: bool = True, wait_s: Seconds = WAIT_S) -> Store:
        """Open the store in a folder; make it if it is missing, bring it up to date if it is older.

        Args:
            location: the folder.
            create: whether to make a missing store.
            wait_s: how long to wait for other writers.

        Raises:
            StoreError: it is missing, unreadable, of a newer version, or kept locked.
        """
        if "://" in str(location):
            scheme = str(location).partition("://")[0]
            raise StoreError(f"{scheme}://…: a store is a folder; pass --store DIR")
        folder = Path(location).absolute()
        database = folder / "runs.db"
        with store_errors(database):
            if not database.exists():
                if not create:
                    raise StoreError(
                        f"{folder}: no runs are stored here; pass --store DIR, or make one with pyrometer bench"
                    )
                _make_folder(folder)
            store = cls(folder, sqlite_engine(database, wait_s=wait_s))
            store._bring_up_to_date()
        return store

    def _bring_up_to_date(self) -> None:
        try:
            with self._engine.begin() as connection:
                if schema.is_current(connection):
                    return
            # Whoever comes second waits for the lock here, and finds the work done.
            with self._writer.begin() as connection:
                schema.upgrade(connection)
        except StoreError as error:
            raise StoreError(f"{self.folder}: {error}") from None
        sync_folder(self.folder)

    def save(self, run: Run, artifacts: Mapping[str, bytes | Path] | None = None) -> Run:
        """Store a run and its files; they are on the disk when this returns.

        Args:
            run: from `new_run`.
            artifacts: content, or a file to copy, by name.

        Returns:
            The run with its number and its artifacts listed.

        Raises:
            StoreError: it could not be written; nothing of it is stored then.
        """
        with store_errors(self._artifacts):
            run = msgspec.structs.replace(
                run, artifacts=write_artifacts(self._artifacts, run.id, artifacts or {})
            )
        with store_errors(self.folder / "runs.db"):
            try:
                with self._writer.begin() as connection:  # no other writer until it ends
                    last = connection.scalar(select(func.max(schema.runs.c.number))) or 0
                    run = msgspec.structs.replace(run, number=last + 1)
                    connection.execute(insert(schema.runs), _row(run))
                    for artifact in run.artifacts:
                        connection.execute(insert(schema.artifacts), {"run_id": run.id, **to_dict(artifact)})
            except DBAPIError:
                if run.artifacts:
                    remove_artifacts(self._artifacts, run.id)
                raise
        return run

    def load(self, reference: str) -> Run:
        """Read a run by its id, by the beginning of its id, or the newest by `last`.

        Raises:
            InputError: no run, or more than one, begins like this.
            StoreError: the store cannot be read; a `DamagedRunError`, the run is not what was saved.
        """
        columns = schema.runs.c
        newest = select(columns.id).order_by(_NEWEST_FIRST)
        if reference == "last":
            query = newest.limit(1)
        else:
            query = newest.where(columns.id.startswith(reference, autoescape=True)).limit(6)
        with store_errors(self.folder / "runs.db"), self._engine.begin() as connection:
            found = connection.scalars(query).all() if reference else []
            if not found:
                raise InputError(f"{reference!r}: no such run in {self.folder}; pyrometer runs lists them")
            if len(found) > 1:
                some = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
                raise InputError(f"{reference!r}: several runs begin like this: {some}; give more of the id")
            row = connection.execute(select(schema.runs).where(columns.id == found[0])).mappings().one()
            files = select(schema.artifacts).where(schema.artifacts.c.run_id == found[0])
            artifacts = [_plain(file) for file in connection.execute(files).mappings()]
        plain = _plain(row)
        if not _is_as_saved(plain, plain.pop("sha256")):
            raise DamagedRunError(
                f"{self.folder / 'runs.db'}: run {found[0]} is damaged: it is not what was saved; take the file from a "
                "backup, or measure again; other runs can be read"
            )
        document = upgraded(plain["kind"], plain["document"])
        return from_dict(Run, {**plain, "document": document, "artifacts": artifacts})

    def runs(
        self, *, kind: str | None = None, name: str | None = None, limit: int | None = None
    ) -> list[RunSummary]:
        """List runs, the newest first.

        Args:
            kind: only of this kind.
            name: only those whose target contains this.
            limit: at most so many.
        """
        query = select(*_SUMMARY).order_by(_NEWEST_FIRST).limit(limit)
        if kind is not None:
            query = query.where(schema.runs.c.kind == kind)
        if name is not None:
            query = query.where(schema.runs.c.target.contains(name, autoescape=True))
        with store_errors(self.folder / "runs.db"), self._engine.begin() as connection:
            return [msgspec.convert(_plain(row), RunSummary) for row in connection.execute(query).mappings()]

    def ids(self) -> list[str]:
        """The id of every run, in no order; documents are left unread, so that it is quick for any number of runs."""
        with store_errors(self.folder / "runs.db"), self._engine.begin() as connection:
            return list(connection.scalars(select(schema.runs.c.id)))

    def summaries(self, run_ids: Iterable[str]) -> list[RunSummary]:
        """The summaries of these runs, in no order; ids that are not stored are passed over."""
        wanted, found = list(run_ids), []
        with store_errors(self.folder / "runs.db"), self._engine.begin() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                chunk = schema.runs.c.id.in_(wanted[start : start + _AT_ONCE])
                rows = connection.execute(select(*_SUMMARY).where(chunk)).mappings()
                found += [msgspec.convert(_plain(row), RunSummary) for row in rows]
        return found

    def with_finding(self, code: str, run_ids: Iterable[str]) -> set[str]:
        """Those of these runs that hold a finding of a rule; reads their documents as text, which takes its time.

        Args:
            code: of the rule, such as PYR101.
            run_ids: where to look.
        """
        wanted, found = list(run_ids), set()
        written = msgspec.json.encode({"code": code}).decode().strip("{}")
        holds = func.instr(cast(schema.runs.c.document, Text), written) > 0
        with store_errors(self.folder / "runs.db"), self._engine.begin() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                chunk = schema.runs.c.id.in_(wanted[start : start + _AT_ONCE])
                found |= set(connection.scalars(select(schema.runs.c.id).where(chunk, holds)))
        return found

    def artifact_path(self, run: Run, name: str) -> Path:
        """Where a file of a run lies.

        Raises:
            InputError: the run has no such file.
        """
        for artifact in run.artifacts:
            if artifact.name == name:
                return self.folder / artifact.path
        names = ", ".join(artifact.name for artifact in run.artifacts) or "none"
        raise InputError(f"run {run.id} has no file {name!r}; it has: {names}")

    def delete(self, run_ids: list[str]) -> None:
        """Delete runs with their files; ids that are not stored are passed over.

        Raises:
            StoreError: the store cannot be written.
        """
        files, runs = schema.artifacts, schema.runs
        doomed = [{"doomed": run_id} for run_id in run_ids]
        with store_errors(self.folder / "runs.db"):
            if doomed:
                with self._writer.begin() as connection:
                    connection.execute(delete(files).where(files.c.run_id == bindparam("doomed")), doomed)
                    connection.execute(delete(runs).where(runs.c.id == bindparam("doomed")), doomed)
            for run_id in run_ids:
                remove_artifacts(self._artifacts, run_id)

    def prune(
        self, *, keep: int | None = None, older_than_s: Seconds | None = None, dry_run: bool = False
    ) -> Pruned:
        """Delete old runs, and files that a killed writer left behind.

        Args:
            keep: never delete the newest so many.
            older_than_s: delete only runs of at least this age. With neither, no run is deleted.
            dry_run: say what would be deleted, and leave it.

        Raises:
            StoreError: the store cannot be written.
        """
        everything, now = self.runs(), datetime.now(UTC)
        doomed = [] if keep is None and older_than_s is None else everything[keep or 0 :]
        if older_than_s is not None:
            doomed = [run for run in doomed if (now - created_at(run)).total_seconds() >= older_than_s]
        with store_errors(self._artifacts):
            orphans = find_orphans(
                self._artifacts, {run.id for run in everything}, older_than_s=_ORPHAN_AGE_S
            )
            folders = [*(run.id for run in doomed), *orphans]
            freed_bytes = sum(artifact_bytes(self._artifacts, folder) for folder in folders)
            if not dry_run:
                self.delete([run.id for run in doomed])
                for orphan in orphans:
                    remove_artifacts(self._artifacts, orphan)
        return Pruned(runs=doomed, orphans=orphans, freed_bytes=freed_bytes)


def _make_folder(folder: Path) -> None:
    made = not folder.exists()
    (folder / "artifacts").mkdir(parents=True, exist_ok=True)
    if made:  # in a folder that was there before, the user decides what git sees
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    sync_folder(folder)
    sync_folder(folder.parent)


def _row(run: Run) -> dict[str, Any]:
    plain = to_dict(run)
    del plain["artifacts"]  # in their own table
    return plain | {"sha256": _digest(msgspec.json.decode(msgspec.json.encode(plain)))}


def _is_as_saved(plain: dict[str, Any], digest: str | None) -> bool:
    """Whether a run has its digest; the oldest have none, and later ones one that does not cover their number."""
    return (
        digest is None
        or digest == _digest(plain)
        or digest == _digest({name: value for name, value in plain.items() if name != "number"})
    )


def _digest(plain: Mapping[str, Any]) -> str:
    """Of all columns of a run as they are read, whatever the order of keys."""
    return hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()


def _plain(row: RowMapping) -> dict[str, Any]:
    # SQLAlchemy's column names are a subclass of `str`, which the records refuse as keys.
    return {str(name): value for name, value in row.items()}
