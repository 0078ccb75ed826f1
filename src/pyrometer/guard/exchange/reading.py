"""Finding the files of other tools, and telling whose they are."""

from __future__ import annotations

from pathlib import Path

from pyrometer.errors import InputError
from pyrometer.guard.exchange.asv import read_asv
from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.exchange.pytest_benchmark import read_pytest_benchmark

BESIDE = frozenset({"benchmarks.json", "machine.json"})
"""What asv keeps beside its results."""


def read_past(place: Path) -> list[PastPoint]:
    """The results in a file, or in all files of a folder, the oldest first.

    Args:
        place: a file of `pytest --benchmark-json`, one of asv's results, or a folder that holds such.

    Raises:
        InputError: there is none, or one cannot be read; names it.
    """
    files = sorted(file for file in place.rglob("*.json") if file.name not in BESIDE)
    points = [_read(file) for file in (files if place.is_dir() else [place])]
    if not points:
        raise InputError(
            f"{place}: holds no *.json; name what pytest --benchmark-json wrote, or the results of asv"
        )
    return sorted(points, key=lambda point: point.taken_at or "")


def _read(file: Path) -> PastPoint:
    try:
        raw = file.read_bytes()
        if b'"result_columns"' not in raw:
            return read_pytest_benchmark(raw)
        described = file.parent.parent / "benchmarks.json"
        return read_asv(raw, described.read_bytes() if described.exists() else None)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
