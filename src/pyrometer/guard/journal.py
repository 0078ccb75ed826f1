"""Pairs that a job has finished, so that the same job goes on from there after it was killed."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from pyrometer.errors import PyrometerError
from pyrometer.guard.pairs import Pair
from pyrometer.record import from_json, to_json
from pyrometer.version import __version__


class Journal:
    """The pairs of one job, one a line; found again by its commits, its benchmarks, this version and the machine.

    Args:
        folder: where journals of unfinished jobs are; null keeps none.
        identity: what the job is.
    """

    def __init__(self, folder: Path | None, identity: list[str]) -> None:
        digest = hashlib.sha256("\0".join([*identity, __version__]).encode()).hexdigest()[:16]
        self._path = None if folder is None else folder / f"guard-{digest}.jsonl"

    def read(self) -> list[Pair]:
        """The pairs so far; a line that was cut off is left out."""
        pairs: list[Pair] = []
        if self._path is None or not self._path.exists():
            return pairs
        for line in self._path.read_bytes().splitlines():
            with contextlib.suppress(PyrometerError, ValueError):
                pairs.append(from_json(Pair, line))
        return pairs

    def add(self, pair: Pair) -> None:
        """Note a pair."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(to_json(pair) + b"\n")

    def remove(self) -> None:
        """The job has ended."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
