"""Where ticks are read from as they come: files that a monitor appends to, or a stream of Redis."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pyrometer.errors import InputError
from pyrometer.monitor.export.redis_stream import connect, read_ticks
from pyrometer.monitor.tick import Tick
from pyrometer.record import from_json

FOLDER, STREAM = ".pyrometer/monitor", "pyrometer:ticks"
"""Where monitors tell of themselves by default."""

FIRST_BYTES = 256 * 1024
"""Of each file, from its end, when it is first seen: some minutes."""


class TickSource(Protocol):
    """Gives ticks that came since the last time."""

    def fresh(self) -> list[Tick]:
        """Everything new; an empty list where there is nothing."""


class FolderTicks:
    """The files `ticks-PID.jsonl` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_up_to: dict[Path, int] = {}

    def fresh(self) -> list[Tick]:
        """Whole lines that were appended since the last time; a line that is no tick is left out."""
        return [tick for file in sorted(self._folder.glob("ticks-*.jsonl")) for tick in self._of(file)]

    def _of(self, file: Path) -> list[Tick]:
        try:
            size = file.stat().st_size
            begin = self._read_up_to.get(file, max(size - FIRST_BYTES, 0))
            begin = 0 if begin > size else begin  # it was rotated
            with file.open("rb") as lines:
                lines.seek(begin)
                raw = lines.read()
        except FileNotFoundError:
            return []  # pruned just now
        whole = raw[: raw.rfind(b"\n") + 1]
        self._read_up_to[file] = begin + len(whole)
        ticks = []
        for line in whole.splitlines():
            try:
                ticks.append(from_json(Tick, line))
            except InputError:
                continue  # the second half of the line that reading began in
        return ticks


class RedisTicks:
    """A stream of Redis, from its last thousand entries on."""

    def __init__(self, url: str, stream: str) -> None:
        self._client = connect(url)
        self._stream = stream
        self._after = self._begin()

    def _begin(self) -> str:
        import redis

        try:
            newest = self._client.xrevrange(self._stream, count=1000)
        except redis.RedisError as error:
            raise InputError(f"redis: {error}; start it, or name another") from error
        oldest = newest[-1][0].decode() if newest else "0-1"
        first, _, second = oldest.partition("-")
        return f"{first}-{int(second) - 1}" if int(second) else f"{int(first) - 1}-{2**63}"

    def fresh(self) -> list[Tick]:
        """Everything new."""
        ticks: list[Tick] = []
        before = ""
        while before != self._after:  # one answer holds a thousand at most
            before = self._after
            more, self._after = read_ticks(self._client, self._stream, before, wait_ms=None)
            ticks += more
        return ticks


def open_source(place: str, stream: str) -> TickSource:
    """Read from a folder, or from the URL of a Redis.

    Raises:
        InputError: there is no such folder, or Redis cannot be reached.
    """
    if "://" in place:
        return RedisTicks(place, stream)
    folder = Path(place)
    if not folder.is_dir():
        raise InputError(
            f"{place}: no such folder; name the folder of a monitor, or redis://HOST:PORT of one that many send to"
        )
    return FolderTicks(folder)
