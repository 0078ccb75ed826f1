"""Several processes of one service: each writes its totals into a folder per tick, and the one that has the port tells all.

The file of a process that is gone is added to `ended.json` and deleted: sums never fall, and the folder does not grow.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.monitor.export.json_lines import is_alive
from pyrometer.monitor.totals import Totals, add_up
from pyrometer.record import from_json, to_json

ENDED = "ended.json"


class SharedTotals:
    """A folder of totals."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, totals: Totals) -> None:
        """Put the totals of this process into its file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._folder / f"{os.getpid()}.json") as beside:
            beside.write_bytes(to_json(totals))

    def read(self) -> Totals:
        """The totals of all processes, those that ended too."""
        with self._locked():
            living: list[Totals] = []
            ended = self._read(self._folder / ENDED)
            gone: list[Path] = []
            for file in sorted(self._folder.glob("[0-9]*.json")):
                found = self._read(file)
                if is_alive(int(file.stem)):
                    living += [] if found is None else [found]
                else:
                    gone.append(file)
                    parts = [one for one in (ended, found) if one is not None]
                    ended = _without_gauges(add_up(parts))
            if gone and ended is not None:
                with replacing(self._folder / ENDED) as beside:
                    beside.write_bytes(to_json(ended))
            for file in gone:
                file.unlink(missing_ok=True)
        return add_up(living, ended)

    @staticmethod
    def _read(file: Path) -> Totals | None:
        try:
            return from_json(Totals, file.read_bytes())
        except (FileNotFoundError, InputError):
            return None  # it has just ended, or is of a version to come

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One reader at a time, so that no process is added twice."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _without_gauges(totals: Totals) -> Totals:
    return Totals(
        source=totals.source, at_s=totals.at_s, counters=totals.counters, histograms=totals.histograms
    )
