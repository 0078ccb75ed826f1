"""Reading what asv keeps for one commit and environment: `results/<machine>/<commit>-<environment>.json`, format 2."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from pyrometer.errors import InputError
from pyrometer.guard.exchange.past import PastFigure, PastPoint, decoded, required
from pyrometer.guard.gate import Kind

TOOL = "asv"
FORMAT = 2
LATEST_MS = 2**53
METRICS: dict[str, tuple[str, Kind]] = {
    "time": ("median_s", "time"),
    "timeraw": ("median_s", "time"),
    "mem": ("object_bytes", "memory"),
    "memory": ("object_bytes", "memory"),
    "peakmem": ("peak_bytes", "memory"),
    "peakmemory": ("peak_bytes", "memory"),
    "track": ("value", "counter"),
}
"""By the type that asv tells, or what the name of a benchmark begins with."""


class _File(msgspec.Struct):
    version: int
    commit_hash: str
    result_columns: list[str]
    results: dict[str, list[Any] | None]
    date: float | None = None
    params: dict[str, Any] = {}


class _Described(msgspec.Struct):
    type: str = ""
    unit: str = ""


def read_asv(raw: bytes | str, benchmarks: bytes | str | None = None) -> PastPoint:
    """The results of a commit, with the intervals that asv computed.

    Args:
        raw: what the file of the commit holds.
        benchmarks: what `results/benchmarks.json` holds, which tells the units of tracked values.

    Raises:
        InputError: it is no such file, one of another format, or holds no result.
    """
    file = decoded(raw, _File, TOOL)
    if file.version != FORMAT:
        raise InputError(
            f"a file of {TOOL} in format {file.version}; {FORMAT} is read: run `asv update`, then read it again"
        )
    described = {} if benchmarks is None else decoded(benchmarks, dict[str, Any], TOOL)
    figures: list[PastFigure] = []
    notes: list[str] = []
    for name, columns in file.results.items():
        row = dict(zip(file.result_columns, columns or [], strict=False))
        try:
            found = list(_figures(name, row, described.get(name)))
        except (TypeError, ValueError, msgspec.ValidationError):
            notes.append(f"{name}: its results cannot be read")
            continue
        figures += [figure for figure in found if math.isfinite(figure.value)]
        if not any(math.isfinite(figure.value) for figure in found):
            notes.append(f"{name}: failed or was skipped")
    point = PastPoint(
        tool=TOOL,
        commit=file.commit_hash or None,
        taken_at=_moment(file.date),
        machine={name: str(value) for name, value in file.params.items() if value},
        figures=figures,
        notes=notes,
    )
    return required(point, TOOL)


def _figures(name: str, row: dict[str, Any], described: Any) -> Iterator[PastFigure]:
    """One for each combination of parameters, in asv's order; what has no result is not a number."""
    about = msgspec.convert(described or {}, type=_Described)
    kind = about.type or name.rpartition(".")[2].partition("_")[0]
    metric, sort = METRICS.get(kind, ("value", "counter"))
    values = row.get("result") or []
    for place, combination in enumerate(itertools.product(*(row.get("params") or []))):
        if place >= len(values):
            return
        low, high, number, repeat = (
            _at(row.get(column), place)
            for column in ("stats_ci_99_a", "stats_ci_99_b", "stats_number", "stats_repeat")
        )
        value = values[place]
        yield PastFigure(
            benchmark=f"{name}({', '.join(map(str, combination))})" if combination else name,
            metric=about.unit or metric if sort == "counter" else metric,
            kind=sort,
            value=math.nan if value is None else float(value),
            low=low,
            high=high,
            num_samples=None if repeat is None or number is None else int(repeat),
        )


def _at(column: Any, place: int) -> float | None:
    """An entry of a column that may be missing, shorter, or hold infinities for what cannot be bounded."""
    if not isinstance(column, list) or place >= len(column) or column[place] is None:
        return None
    value = float(column[place])
    return value if math.isfinite(value) else None


def _moment(date_ms: float | None) -> str | None:
    if date_ms is None or not 0 <= date_ms < LATEST_MS:
        return None
    try:
        return dt.datetime.fromtimestamp(date_ms / 1000, dt.UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None
