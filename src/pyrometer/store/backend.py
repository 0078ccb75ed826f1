"""What a store needs of the place that it is in: a database, files, and one document of marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from sqlalchemy import Connection, Engine

from pyrometer.quantity import Bytes
from pyrometer.store.run import Artifact

Contents: TypeAlias = Mapping[str, bytes | Path]
"""Files of a run by name: content, or a file to copy."""

Signature: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of a time in nanoseconds, 0 where none is known, and a figure."""


class Backend(Protocol):
    """A folder with SQLite, or a PostgreSQL server; `where` is the file or database that messages name."""

    name: str
    where: str
    local: Path
    engine: Engine

    def is_empty(self) -> bool:
        """Whether nothing was ever stored."""

    def prepare(self) -> None:
        """Make what has to be there before the tables."""

    def settle(self) -> None:
        """Called when the tables are made or brought up to date."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns what the system and the database say into a `StoreError`, in one line."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that waits for other writers, and that others wait for."""

    def saving(
        self, run_id: str, contents: Contents
    ) -> AbstractContextManager[tuple[Connection, list[Artifact]]]:
        """The same, with the files of a run written; they are gone when it fails."""

    def read(self, run_id: str, name: str) -> Iterator[bytes]:
        """A file of a run, piece by piece."""

    def forget(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """Delete files of runs as far as they are in the database."""

    def remove(self, folders: Sequence[str]) -> None:
        """Delete files that lie outside of the database, once their runs are gone."""

    def orphans(self, run_ids: set[str]) -> list[str]:
        """Folders of files that belong to no run."""

    def size_bytes(self, run_ids: Sequence[str]) -> Bytes:
        """How large the files of runs, or folders of orphans, are."""

    def signature(self) -> Signature:
        """Changes whenever something is stored or deleted; cheap to ask."""

    def read_marks(self) -> bytes | None:
        """The document of marks; `None` where nothing was marked."""

    def change_marks(self, change: Callable[[bytes | None], bytes]) -> None:
        """Put another document of marks in the place of the one that is there."""
