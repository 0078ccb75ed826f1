"""What was made of rank files before: a file that has not changed since is not read again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from pyrometer.trace.jobs.executor import Executor
from pyrometer.trace.jobs.job import RankFailure
from pyrometer.trace.reading.cache import Cache, default_folder
from pyrometer.trace.trace import RankTrace
from pyrometer.version import __version__

ANALYSIS_VERSION = 2
"""To be raised with any change of what reports and summaries make of the same file."""

LIMIT_BYTES = 1 << 30


class Made(Protocol):
    """What a rank's file was reduced to."""

    @property
    def rank(self) -> int:
        """Its rank."""
        ...

    @property
    def path(self) -> str:
        """The file, as it was given."""
        ...

    @property
    def rank_from(self) -> str:
        """How that is known; `order` depends on the other files."""
        ...


M = TypeVar("M", bound=Made)


class Kept(Generic[M]):
    """A folder of what files were reduced to, keyed by path, size, time of change and inode, and by the analysis.

    Args:
        kind: the record that is kept.
        folder: made when it is first needed; none keeps nothing.
    """

    def __init__(self, kind: type[M], folder: Path | None) -> None:
        self.kind = kind
        self.cache = None if folder is None else Cache(folder, limit_bytes=LIMIT_BYTES, suffix=".rank")
        self.note = ""

    def get(self, path: Path, order: int) -> M | None:
        """What is kept of a file as it is now, at this place among the files of its job."""
        entry = self._entry(path)
        if entry is None:
            return None
        try:
            made = msgspec.msgpack.decode(entry.read_bytes(), type=self.kind)
            os.utime(entry)
        except (OSError, msgspec.DecodeError):  # not kept, or not whole: it is made again
            return None
        return made if made.rank_from != "order" or made.rank == order else None

    def put(self, entry: Path | None, made: M) -> None:
        """Keep it under an entry; what goes wrong is told in `note`, and ends keeping."""
        if self.cache is None or entry is None:
            return
        try:
            self.cache.folder.mkdir(parents=True, exist_ok=True)
            beside = self.cache.beside()
            try:
                beside.write_bytes(msgspec.msgpack.encode(made))
                beside.replace(entry)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            self.note = f"cache: {self.cache.folder} cannot be written ({error.strerror}); every file is read again next time"
            self.cache = None

    def reduced(
        self, paths: Sequence[Path], executor: Executor, reduce: Callable[[RankTrace], M]
    ) -> Iterator[M | RankFailure]:
        """One outcome per path, in any order: what is kept, and the rest by the executor."""
        missing, entries = [], {}
        for order, path in enumerate(paths):
            made = self.get(path, order)
            if made is None:
                missing.append((order, path))
                entries[str(path)] = self._entry(path)
            else:
                yield made
        orders = [order for order, _ in missing]
        left = [path for _, path in missing]
        for outcome in executor.map_ranks(left, reduce, orders) if left else ():
            if not isinstance(outcome, RankFailure):
                entry = entries[outcome.path]
                # A file that was written while it was read is read again next time.
                if entry == self._entry(Path(outcome.path)):
                    self.put(entry, outcome)
            yield outcome
        if left and self.cache is not None and self.cache.folder.is_dir():
            self.cache.make_room()

    def _entry(self, path: Path) -> Path | None:
        """The file in which it would be kept; none where nothing is kept, or the file is not there."""
        if self.cache is None:
            return None
        try:
            state = path.stat()
        except OSError:
            return None
        facts = (
            self.kind.__name__,
            __version__,
            ANALYSIS_VERSION,
            os.path.realpath(path),
            state.st_size,
            state.st_mtime_ns,
            state.st_ino,
        )
        key = hashlib.blake2b(repr(facts).encode("utf-8", "surrogateescape"), digest_size=24).hexdigest()
        return self.cache.folder / f"{key}{self.cache.suffix}"


def kept_folder() -> Path | None:
    """Where summaries are kept: beside the cache of traces; none where that is off."""
    folder = default_folder()
    return None if folder is None else folder.with_name("ranks")
