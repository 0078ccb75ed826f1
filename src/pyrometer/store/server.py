"""A store in PostgreSQL, for a team: runs, files and marks in one database, so that everybody sees the same pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import msgspec
from sqlalchemy import Connection, create_engine, delete, event, func, insert, inspect, select, text

from pyrometer.errors import StoreError
from pyrometer.quantity import Bytes, Seconds, format_bytes
from pyrometer.store import schema
from pyrometer.store.artifacts import require_plain_names
from pyrometer.store.backend import Contents, Signature
from pyrometer.store.failure import server_errors
from pyrometer.store.place import local_folder, require_address, shown
from pyrometer.store.run import Artifact

if TYPE_CHECKING:
    import psycopg

PART_BYTES = 1 << 20
"""Of a file, in a row: neither side ever holds more of it at once."""

MOST_BYTES = 256 << 20
"""Of one file: what is larger belongs on a disk."""

_LOCK = 0x5059524F  # any number that no other program locks: "PYRO"
_CONNECT_S = 10
# A server that vanishes without a word is noticed within half a minute, and not after hours.
_ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}


class ServerBackend:
    """Everything in one database."""

    def __init__(self, location: str, *, wait_s: Seconds) -> None:
        self.name = self.where = shown(location)
        self.local = local_folder(location)
        self._address = require_address(location)
        self._wait_ms = max(1, round(wait_s * 1000))
        connect = _connector(self._address, self.name)
        self.engine = create_engine(
            "postgresql+psycopg://",
            pool_pre_ping=True,
            json_serializer=lambda value: msgspec.json.encode(value).decode(),
            json_deserializer=msgspec.json.decode,
        )
        # libpq reads the address, with all that it knows of sockets, services and several hosts.
        event.listen(self.engine, "do_connect", lambda _dialect, _record, _args, more: connect(more))
        finalize(self, self.engine.dispose)

    def is_empty(self) -> bool:
        """Whether there are no tables."""
        with self.engine.connect() as connection:
            return not inspect(connection).has_table(schema.runs.name)

    def prepare(self) -> None:
        """Nothing: the database is made by whoever runs the server."""

    def settle(self) -> None:
        """Nothing: a commit is on the server's disk."""

    def errors(self) -> AbstractContextManager[None]:
        """Errors name the server, and never the password."""
        return server_errors(self.name, self._address)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One writer at a time, among all machines."""
        with self.engine.begin() as connection:
            self._lock(connection)
            yield connection

    @contextmanager
    def saving(self, run_id: str, contents: Contents) -> Iterator[tuple[Connection, list[Artifact]]]:
        """Files first: others wait only while the run itself is written."""
        require_plain_names(contents)
        with self.engine.begin() as connection:
            written = [
                _write(connection, run_id, name, content, self.name) for name, content in contents.items()
            ]
            self._lock(connection)
            yield connection, written

    def _lock(self, connection: Connection) -> None:
        connection.execute(text(f"SET LOCAL lock_timeout = {self._wait_ms}"))
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))

    def read(self, run_id: str, name: str) -> Iterator[bytes]:
        """Row by row."""
        parts = schema.blobs.c
        mine = (parts.run_id == run_id, parts.name == name)
        with self.errors(), self.engine.connect() as connection:
            number = 0
            while True:
                part = connection.scalar(select(parts.content).where(*mine, parts.part == number))
                if part is None:
                    return
                yield bytes(part)
                number += 1

    def forget(self, connection: Connection, run_ids: Sequence[str]) -> None:
        """With their runs, in one transaction."""
        connection.execute(delete(schema.blobs).where(schema.blobs.c.run_id.in_(run_ids)))

    def remove(self, folders: Sequence[str]) -> None:
        """Nothing: there are no files outside of the database."""

    def orphans(self, _run_ids: set[str]) -> list[str]:
        """None: files and their run become visible together."""
        return []

    def size_bytes(self, run_ids: Sequence[str]) -> Bytes:
        """As the list of files says."""
        files = schema.artifacts.c
        with self.errors(), self.engine.connect() as connection:
            total = select(func.sum(files.size_bytes)).where(files.run_id.in_(run_ids))
            return int(connection.scalar(total) or 0)

    def signature(self) -> Signature:
        """How many runs there are, and the number of the last one."""
        runs = schema.runs.c
        with self.errors(), self.engine.connect() as connection:
            count, last = connection.execute(select(func.count(runs.id), func.max(runs.number))).one()
        return (0, count), (0, last or 0)

    def read_marks(self) -> bytes | None:
        """From the only row of their table."""
        with self.errors(), self.engine.connect() as connection:
            return _marks(connection)

    def change_marks(self, change: Callable[[bytes | None], bytes]) -> None:
        """As the only writer."""
        with self.errors(), self.writing() as connection:
            content = change(_marks(connection)).decode()
            connection.execute(delete(schema.marks))
            connection.execute(insert(schema.marks), {"id": 1, "content": content})


def _connector(address: str, name: str) -> Callable[[dict[str, Any]], psycopg.Connection[Any]]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise StoreError(
            f"{name}: a store in PostgreSQL needs psycopg, which is not installed; install it by "
            "pip install 'pyrometer[postgres]'"
        ) from error
    try:
        given = conninfo_to_dict(address)
    except psycopg.ProgrammingError:  # its message would repeat the address
        raise StoreError(
            f"{name}: libpq cannot read this address; legal is postgresql://USER@HOST:PORT/DATABASE?sslmode=…"
        ) from None
    defaults = {"connect_timeout": _CONNECT_S, "application_name": "pyrometer", **_ALIVE}
    added: dict[str, Any] = {key: value for key, value in defaults.items() if key not in given}
    return lambda more: psycopg.connect(address, **{**added, **more})


def _marks(connection: Connection) -> bytes | None:
    content = connection.scalar(select(schema.marks.c.content))
    return None if content is None else str(content).encode()


def _write(connection: Connection, run_id: str, name: str, content: bytes | Path, store: str) -> Artifact:
    digest, size_bytes = hashlib.sha256(), 0
    with BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
        number = 0
        while (part := source.read(PART_BYTES)) or not number:
            digest.update(part)
            size_bytes += len(part)
            if size_bytes > MOST_BYTES:
                raise StoreError(
                    f"{store}: {name} is larger than {format_bytes(MOST_BYTES)}, which is the most that a database keeps "
                    "of a file; pass --store DIR"
                )
            row = {"run_id": run_id, "name": name, "part": number, "content": part}
            connection.execute(insert(schema.blobs), row)
            number += 1
    return Artifact(
        name=name, path=f"artifacts/{run_id}/{name}", size_bytes=size_bytes, sha256=digest.hexdigest()
    )
