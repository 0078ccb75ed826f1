"""Traces that were read before, in columns: a folder of entries, keyed by what the file holds.

The key is made of the file's bytes, of the tables' columns and of the reader's version, so an entry is never stale. The cache
never fails a read: a broken entry is replaced, a folder that cannot be written is done without, and noted.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyrometer.trace import schema
from pyrometer.trace.kinds import KIND_OF_CATEGORY
from pyrometer.trace.reading.entry import BrokenEntryError, read_entry, write_entry
from pyrometer.trace.reading.load import Loaded

READER_VERSION = 1
"""To be raised with any change of what reading makes of the same bytes."""

LIMIT_BYTES = 2 << 30
SMALLEST_RAW = 1 << 20
"""Smaller files are read faster than they are found."""

SEGMENT = 1 << 25
SUFFIX = ".pyrotrace"
STALE_S = 86400


def default_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where entries are kept: `$PYROMETER_CACHE/traces`, `$XDG_CACHE_HOME/pyrometer/traces` or `~/.cache/…`.

    >>> default_folder({"PYROMETER_CACHE": "/scratch/cache"}).as_posix()
    '/scratch/cache/traces'
    >>> default_folder({"PYROMETER_CACHE": "off"}) is None
    True
    """
    own = environment.get("PYROMETER_CACHE", "")
    if own.lower() == "off":
        return None
    if own:
        return Path(own).expanduser() / "traces"
    try:
        home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        return None
    return home / "pyrometer" / "traces"


def content_key(path: Path) -> str:
    """Hash of a file's bytes, segments at the same time, and of everything that decides what is made of them.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.blake2b(_READER, digest_size=24)
    places = range(0, path.stat().st_size, SEGMENT)
    if len(places) < 2:
        digest.update(_segment(path, 0))
    else:
        with ThreadPoolExecutor() as pool:
            for part in pool.map(lambda at: _segment(path, at), places):
                digest.update(part)
    return digest.hexdigest()


_READER = repr(
    (
        schema.SCHEMA_VERSION,
        READER_VERSION,
        {name: schema.dtypes(table) for name, table in schema.TABLES.items()},
        sorted((category, kind.value) for category, kind in KIND_OF_CATEGORY.items()),
    )
).encode()


def _segment(path: Path, at: int) -> bytes:
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        file.seek(at)
        left = SEGMENT
        while left and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.digest()


class Cache:
    """A folder of entries; the ones that were not used for longest make room when it is full.

    Args:
        folder: made when it is first needed.
        limit_bytes: what it may hold.
        suffix: of its entries.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = LIMIT_BYTES, suffix: str = SUFFIX) -> None:
        self.folder = folder
        self.suffix = suffix
        self.limit_bytes = limit_bytes

    def get(self, key: str) -> tuple[Loaded | None, str]:
        """An entry if there is one, and a note if it could not be used."""
        path = self._path(key)
        try:
            loaded = read_entry(path)
            os.utime(path)
        except FileNotFoundError:
            return None, ""
        except BrokenEntryError as error:
            return None, f"cache: {error}; replaced"
        except OSError as error:
            return None, f"cache: {path} cannot be read ({error.strerror})"
        return loaded, ""

    def put(self, key: str, loaded: Loaded) -> str:
        """Keep an entry; gives a note if that failed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            beside = self.beside()
            try:
                write_entry(loaded, beside)
                beside.replace(self._path(key))
            finally:
                beside.unlink(missing_ok=True)
            self.make_room()
        except OSError as error:
            return f"cache: {self.folder} cannot be written ({error.strerror}); set PYROMETER_CACHE to another folder, or to off"
        return ""

    def beside(self) -> Path:
        """A name for a file that is being written."""
        return self.folder / f".{os.getpid()}-{secrets.token_hex(8)}.tmp"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{self.suffix}"

    def make_room(self) -> None:
        """Remove the entries that were not used for longest, until the others fit."""
        entries = []
        for path in self.folder.iterdir():
            try:
                state = path.stat()
            except FileNotFoundError:  # another process made room as well
                continue
            if path.suffix == self.suffix:
                entries.append((state.st_mtime, state.st_size, path))
            elif path.suffix == ".tmp" and time.time() - state.st_mtime > STALE_S:
                path.unlink(missing_ok=True)
        excess = sum(size for _, size, _ in entries) - self.limit_bytes
        for _, size, path in sorted(entries)[:-1]:  # the one just written stays
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
