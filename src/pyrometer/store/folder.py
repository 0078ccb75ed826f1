"""A store in a folder: a database of runs in SQLite, and the files that belong to them beside it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pyrometer.errors import InputError, StoreError
from pyrometer.files import replacing, sync
from pyrometer.quantity import Bytes, Seconds
from pyrometer.store.artifacts import (
    artifact_bytes,
    find_orphans,
    read_file,
    remove_artifacts,
    write_artifacts,
)
from pyrometer.store.backend import Contents, Signature
from pyrometer.store.failure import store_errors
from pyrometer.store.run import Artifact
from pyrometer.store.sqlite import DATABASE, sqlite_engine

MARKS = "marks.json"
_ORPHAN_AGE_S = 3600.0
_MARKING = threading.Lock()


class FolderBackend:
    """SQLite in `runs.db`, files in `artifacts/`, marks in `marks.json`."""

    def __init__(self, folder: Path, *, wait_s: Seconds) -> None:
        self.local = folder
        self.name = str(folder)
        self.database = folder / DATABASE
        self.where = str(self.database)
        self.engine = sqlite_engine(self.database, wait_s=wait_s)
        self._writer = self.engine.execution_options(writes=True)
        self._artifacts = folder / "artifacts"

    def is_empty(self) -> bool:
        """Whether there is no database."""
        return not self.database.exists()

    def prepare(self) -> None:
        """Make the folder."""
        made = not self.local.exists()
        self._artifacts.mkdir(parents=True, exist_ok=True)
        if made:  # in a folder that was there before, the user decides what git sees
            (self.local / ".gitignore").write_text("*\n", encoding="utf-8")
        sync(self.local)
        sync(self.local.parent)

    def settle(self) -> None:
        """Force the name of a new database to the disk."""
        sync(self.local)

    def errors(self) -> AbstractContextManager[None]:
        """Errors name the database."""
        return store_errors(self.database)

    def writing(self) -> AbstractContextManager[Connection]:
        """Takes the write lock of SQLite at once."""
        return self._writer.begin()

    @contextmanager
    def saving(self, run_id: str, contents: Contents) -> Iterator[tuple[Connection, list[Artifact]]]:
        """Files are on the disk before the run is in the database."""
        with store_errors(self._artifacts):
            written = write_artifacts(self._artifacts, run_id, contents)
        try:
            with self.writing() as connection:
                yield connection, written
        except DBAPIError:
            if written:
                remove_artifacts(self._artifacts, run_id)
            raise

    def read(self, run_id: str, name: str) -> Iterator[bytes]:
        """From the folder of the run, and from nowhere else, whatever a store of others says."""
        folder = (self._artifacts / run_id).resolve()
        path = (folder / name).resolve()
        if path.parent != folder or folder.parent != self._artifacts.resolve():
            raise InputError(f"{name}: the file of run {run_id} lies elsewhere than the files of that run do")
        return read_file(path)

    def forget(self, _connection: Connection, _run_ids: Sequence[str]) -> None:
        """Nothing: files lie outside of the database."""

    def remove(self, folders: Sequence[str]) -> None:
        """Delete the folders of runs."""
        with store_errors(self._artifacts):
            for folder in folders:
                remove_artifacts(self._artifacts, folder)

    def orphans(self, run_ids: set[str]) -> list[str]:
        """What killed writers left behind an hour ago or earlier."""
        with store_errors(self._artifacts):
            return find_orphans(self._artifacts, run_ids, older_than_s=_ORPHAN_AGE_S)

    def size_bytes(self, run_ids: Sequence[str]) -> Bytes:
        """As the files are on the disk."""
        with store_errors(self._artifacts):
            return sum(artifact_bytes(self._artifacts, folder) for folder in run_ids)

    def signature(self) -> Signature:
        """A commit changes the log first, and the database sooner or later."""
        return signature_of(self.local)

    def read_marks(self) -> bytes | None:
        """From one small file."""
        try:
            return (self.local / MARKS).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.local / MARKS}: cannot be read ({error.strerror})") from error

    def change_marks(self, change: Callable[[bytes | None], bytes]) -> None:
        """The file is written whole."""
        with _MARKING:
            content = change(self.read_marks())
            try:
                with replacing(self.local / MARKS) as beside:
                    beside.write_bytes(content)
            except OSError as error:
                raise StoreError(f"{self.local / MARKS}: cannot be written ({error.strerror})") from error


def signature_of(folder: Path) -> Signature:
    """When the database and its log were written, and how large they are; of a folder without a store as well."""
    return tuple(_stat(folder / name) for name in (DATABASE, f"{DATABASE}-wal"))


def _stat(path: Path) -> tuple[int, int]:
    try:
        stat_result = os.stat(path)  # noqa: PTH116 - a hundred times a minute
    except OSError:
        return 0, 0
    return stat_result.st_mtime_ns, stat_result.st_size
