"""Where runs are kept: a database of runs and the files that belong to them, in a folder or on a PostgreSQL server.

::

    .pyrometer/
      .gitignore              *
      runs.db                 SQLite, write-ahead log
      artifacts/<run id>/…    reports and other files
      marks.json              notes and baselines

On a server all of it is in tables, and a folder `.pyrometer` keeps what concerns one machine alone.

A run that `save` returned survives a kill and a power loss, with its files. A writer that is killed earlier leaves
at most files that belong to no run, which `prune` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, Text, bindparam, cast, delete, func, insert, select

from pyrometer.errors import InputError, StoreError
from pyrometer.quantity import Seconds
from pyrometer.record import from_json, to_dict, to_json
from pyrometer.store import schema
from pyrometer.store.backend import Backend, Contents, Signature
from pyrometer.store.folder import FolderBackend
from pyrometer.store.marks import Marks
from pyrometer.store.place import Location, is_server, shown
from pyrometer.store.rows import digest_of, run_of
from pyrometer.store.run import Pruned, Run, RunSummary, created_at

WAIT_S = 60.0
_AT_ONCE = 500  # variables that a statement of the oldest SQLite takes, and to spare
_NEWEST_FIRST = schema.runs.c.number.desc()
_name = attrgetter("name")
_SUMMARY = [schema.runs.c[field] for field in RunSummary.__struct_fields__]


class Store:
    """Runs in one place; any number of processes may use it at the same time."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._engine = backend.engine
        self._errors = backend.errors

    @property
    def name(self) -> str:
        """The folder, or the address without its password."""
        return self._backend.name

    @property
    def folder(self) -> Path:
        """The folder of the store; of one on a server, that of what stays on this machine."""
        return self._backend.local

    @classmethod
    def open(cls, location: Location, *, create: bool = True, wait_s: Seconds = WAIT_S) -> Store:
        """Open a store; make it if it is missing, bring it up to date if it is older.

        Args:
            location: a folder, or `postgresql://user@host/database`.
            create: whether to make a missing store.
            wait_s: how long to wait for other writers.

        Raises:
            StoreError: it is missing, unreadable, of a newer version, or kept locked.
        """
        store = cls.open_if_there(location, create=create, wait_s=wait_s)
        if store is None:
            where = shown(location) if is_server(location) else Path(location).absolute()
            raise StoreError(
                f"{where}: no runs are stored here; pass --store DIR, or make one with pyrometer bench"
            )
        return store

    @classmethod
    def open_if_there(
        cls, location: Location, *, create: bool = False, wait_s: Seconds = WAIT_S
    ) -> Store | None:
        """The same; `None` where nothing was ever stored and nothing is to be made.

        Raises:
            StoreError: it is unreadable, of a newer version, or kept locked.
        """
        backend = _backend(location, wait_s)
        with backend.errors():
            if backend.is_empty():
                if not create:
                    return None
                backend.prepare()
            store = cls(backend)
            store._bring_up_to_date()
        return store

    def _bring_up_to_date(self) -> None:
        try:
            with self._engine.begin() as connection:
                if schema.is_current(connection):
                    return
            # Whoever comes second waits for the lock here, and finds the work done.
            with self._backend.writing() as connection:
                schema.upgrade(connection)
        except StoreError as error:
            raise StoreError(f"{self.name}: {error}") from None
        self._backend.settle()

    def save(self, run: Run, artifacts: Contents | None = None) -> Run:
        """Store a run and its files; they are on the disk when this returns.

        Args:
            run: from `new_run`.
            artifacts: content, or a file to copy, by name.

        Returns:
            The run with its number and its artifacts listed.

        Raises:
            StoreError: it could not be written; nothing of it is stored then.
        """
        with self._errors(), self._backend.saving(run.id, artifacts or {}) as (connection, written):
            last = (
                connection.scalar(select(func.max(schema.runs.c.number))) or 0
            )  # no other writer until it ends
            run = msgspec.structs.replace(run, artifacts=sorted(written, key=_name), number=last + 1)
            connection.execute(insert(schema.runs), _row(run))
            for artifact in run.artifacts:
                connection.execute(insert(schema.artifacts), {"run_id": run.id, **to_dict(artifact)})
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
        with self._errors(), self._engine.begin() as connection:
            found = connection.scalars(query).all() if reference else []
            if not found:
                raise InputError(f"{reference!r}: no such run in {self.name}; pyrometer runs lists them")
            if len(found) > 1:
                some = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
                raise InputError(f"{reference!r}: several runs begin like this: {some}; give more of the id")
            row = connection.execute(select(schema.runs).where(columns.id == found[0])).mappings().one()
            files = select(schema.artifacts).where(schema.artifacts.c.run_id == found[0])
            kept = [_plain(file) for file in connection.execute(files).mappings()]
        return run_of(_plain(row), kept, self._backend.where)

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
        with self._errors(), self._engine.begin() as connection:
            return [msgspec.convert(_plain(row), RunSummary) for row in connection.execute(query).mappings()]

    def ids(self) -> list[str]:
        """The id of every run, in no order; documents are left unread, so that it is quick for any number of runs."""
        with self._errors(), self._engine.begin() as connection:
            return list(connection.scalars(select(schema.runs.c.id)))

    def summaries(self, run_ids: Iterable[str]) -> list[RunSummary]:
        """The summaries of these runs, in no order; ids that are not stored are passed over."""
        wanted, found = list(run_ids), []
        with self._errors(), self._engine.begin() as connection:
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
        holds = cast(schema.runs.c.document, Text).contains(written, autoescape=True)
        with self._errors(), self._engine.begin() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                chunk = schema.runs.c.id.in_(wanted[start : start + _AT_ONCE])
                found |= set(connection.scalars(select(schema.runs.c.id).where(chunk, holds)))
        return found

    def file_parts(self, run: Run, name: str) -> Iterator[bytes]:
        """A file of a run, piece by piece.

        Raises:
            InputError: the run has no such file.
            OSError: the file cannot be read.
            StoreError: the server cannot be asked for it.
        """
        if all(artifact.name != name for artifact in run.artifacts):
            names = ", ".join(artifact.name for artifact in run.artifacts) or "none"
            raise InputError(f"run {run.id} has no file {name!r}; it has: {names}")
        return self._backend.read(run.id, name)

    def read_file(self, run: Run, name: str) -> bytes:
        """A file of a run; raises as `file_parts` does."""
        return b"".join(self.file_parts(run, name))

    def marks(self) -> Marks:
        """Notes and baselines.

        Raises:
            StoreError: they cannot be read.
        """
        return self._marks(self._backend.read_marks())

    def change_marks(self, change: Callable[[Marks], Marks]) -> Marks:
        """Change notes and baselines, and nothing that another process changes at the same time.

        Raises:
            StoreError: they cannot be read or written.
        """
        made = Marks()

        def changed(content: bytes | None) -> bytes:
            nonlocal made
            made = change(self._marks(content))
            return to_json(made)

        self._backend.change_marks(changed)
        return made

    def _marks(self, content: bytes | None) -> Marks:
        try:
            return Marks() if content is None else from_json(Marks, content)
        except (InputError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{self.name}: its notes cannot be read ({error}); move marks.json, or the row of the table marks, away to go on "
                "without them"
            ) from error

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction of somebody else's tables that only reads; errors become a `StoreError`."""
        return self._within(self._engine.begin())

    def writing(self) -> AbstractContextManager[Connection]:
        """The same as the only writer: others wait for its end."""
        return self._within(self._backend.writing())

    @contextmanager
    def _within(self, transaction: AbstractContextManager[Connection]) -> Iterator[Connection]:
        with self._errors(), transaction as connection:
            yield connection

    def signature(self) -> Signature:
        """Changes whenever a run is stored or deleted.

        Raises:
            StoreError: the server cannot be asked.
        """
        return self._backend.signature()

    def delete(self, run_ids: list[str]) -> None:
        """Delete runs with their files; ids that are not stored are passed over.

        Raises:
            StoreError: the store cannot be written.
        """
        files, runs = schema.artifacts, schema.runs
        doomed = [{"doomed": run_id} for run_id in run_ids]
        with self._errors():
            if doomed:
                with self._backend.writing() as connection:
                    self._backend.forget(connection, run_ids)
                    connection.execute(delete(files).where(files.c.run_id == bindparam("doomed")), doomed)
                    connection.execute(delete(runs).where(runs.c.id == bindparam("doomed")), doomed)
            self._backend.remove(run_ids)

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
        orphans = self._backend.orphans({run.id for run in everything})
        freed_bytes = self._backend.size_bytes([*(run.id for run in doomed), *orphans])
        if not dry_run:
            self.delete([run.id for run in doomed])
            self._backend.remove(orphans)
        return Pruned(runs=doomed, orphans=orphans, freed_bytes=freed_bytes)


def _backend(location: Location, wait_s: Seconds) -> Backend:
    if is_server(location):
        from pyrometer.store.server import ServerBackend

        return ServerBackend(str(location), wait_s=wait_s)
    return FolderBackend(Path(location).absolute(), wait_s=wait_s)


def _row(run: Run) -> dict[str, Any]:
    plain = to_dict(run)
    del plain["artifacts"]  # in their own table
    return plain | {"sha256": digest_of(msgspec.json.decode(msgspec.json.encode(plain)))}


def _plain(row: RowMapping) -> dict[str, Any]:
    # SQLAlchemy's column names are a subclass of `str`, which the records refuse as keys.
    return {str(name): value for name, value in row.items()}
