"""Threads and streams: one number for each pair of `pid` and `tid`, and the names that metadata events give them."""

from __future__ import annotations

from typing import Any

import polars as pl
from msgspec import Raw

from pyrometer.trace import schema
from pyrometer.trace.reading.arguments import readable
from pyrometer.trace.reading.decoding import DECODE_ERRORS, decoder


class Tracks(dict[tuple[Any, Any], int]):
    """Number of a track, by pid and tid as decoded; 7 and "7" are the same."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[tuple[str, str], int] = {}
        self._thread_names: dict[tuple[str, str], str] = {}
        self._process_names: dict[str, str] = {}

    def __missing__(self, key: tuple[Any, Any]) -> int:
        number = self._numbers.setdefault((_spelt(key[0]), _spelt(key[1])), len(self._numbers))
        self[key] = number
        return number

    def name(self, what: str | None, pid: Any, tid: Any, args: bytes) -> None:
        """Take a metadata event."""
        if what == "process_name":
            self._process_names[_spelt(pid)] = _label(args)
        elif what == "thread_name":
            self._thread_names[_spelt(pid), _spelt(tid)] = _label(args)

    def table(self, rank: int, on_device: set[int]) -> pl.DataFrame:
        """`schema.TRACKS`; named tracks without events come last."""
        for key in self._thread_names:
            self._numbers.setdefault(key, len(self._numbers))
        rows = [
            {
                "track": number,
                "rank": rank,
                "pid": pid,
                "tid": tid,
                "process_name": self._process_names.get(pid),
                "thread_name": self._thread_names.get((pid, tid)),
                "is_device": number in on_device,
            }
            for (pid, tid), number in self._numbers.items()
        ]
        return pl.DataFrame(rows, schema=schema.dtypes(schema.TRACKS))


def _spelt(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _label(args: bytes) -> str:
    texts, _ = readable([Raw(args)])
    try:
        return str(decoder(dict[str, Any]).decode(texts[0]).get("name") or "")
    except DECODE_ERRORS:  # such as a number that no float holds
        return ""
