"""Reading what `pytest --benchmark-json` writes."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from pyrometer.bench.quantiles import estimate_quantile
from pyrometer.guard.exchange.past import PastFigure, PastPoint, decoded, required

TOOL = "pytest-benchmark"
CONFIDENCE = 0.99
UNKNOWN = {None, "", "unknown"}
MACHINE = ("node", "machine", "system", "release", "python_implementation", "python_version")


class _Stats(msgspec.Struct):
    median: float
    rounds: int
    data: list[float] = []


class _Benchmark(msgspec.Struct):
    fullname: str
    stats: _Stats


class _File(msgspec.Struct):
    benchmarks: list[_Benchmark]
    machine_info: dict[str, Any] = {}
    commit_info: dict[str, Any] = {}
    datetime: str | None = None
    version: str = ""


def read_pytest_benchmark(raw: bytes | str) -> PastPoint:
    """The medians of a file, with intervals where it holds the single rounds (`--benchmark-json` does by default).

    Args:
        raw: what the file holds.

    Raises:
        InputError: it is no such file, or holds no result.
    """
    file = decoded(raw, _File, TOOL)
    usable = [one for one in file.benchmarks if math.isfinite(one.stats.median) and one.stats.median > 0]
    cpu = file.machine_info.get("cpu")
    told = {**file.machine_info, "cpu": cpu.get("brand_raw") if isinstance(cpu, dict) else cpu}
    commit = file.commit_info.get("id")
    point = PastPoint(
        tool=f"{TOOL} {file.version}".strip(),
        commit=None if commit in UNKNOWN else str(commit),
        is_dirty=bool(file.commit_info.get("dirty")),
        taken_at=file.datetime,
        machine={name: str(told[name]) for name in (*MACHINE, "cpu") if told.get(name)},
        figures=[_figure(one) for one in usable],
        notes=[f"{one.fullname}: no time was taken" for one in file.benchmarks if one not in usable],
    )
    return required(point, TOOL)


def _figure(one: _Benchmark) -> PastFigure:
    samples = np.asarray([value for value in one.stats.data if math.isfinite(value)])
    bounds = estimate_quantile(samples, 0.5, CONFIDENCE) if len(samples) > 1 else None
    return PastFigure(
        benchmark=one.fullname,
        metric="median_s",
        kind="time",
        value=one.stats.median,
        low=None if bounds is None else bounds.low_s,
        high=None if bounds is None else bounds.high_s,
        num_samples=one.stats.rounds,
    )
