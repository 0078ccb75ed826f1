"""Times by name, phase and module: what can be compared when call trees cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.difference.change import change
from pyrometer.trace.difference.record import GroupChange, NamedChange, Status
from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.naming.patterns import is_step_mark
from pyrometer.trace.program.phase_labels import phase_labels, phase_names
from pyrometer.trace.program.where import place_names
from pyrometer.trace.trace import RankTrace

Times = npt.NDArray[np.int64]
WORKING = (Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON_FUNCTION)


_Groups = Mapping[str, tuple[Times, Times]]


class Sums(NamedTuple):
    """Of one name: per step."""

    time: Times
    calls: Times


def compare_operators(a: RankTrace, b: RankTrace, top: int) -> list[NamedChange]:
    """Host time in each operator itself, with the runtime calls that it makes."""
    return _named(_sums(a, _operator_time(a)), _sums(b, _operator_time(b)), top)


def compare_kernels(a: RankTrace, b: RankTrace, top: int) -> list[NamedChange]:
    """Device time of each kernel, copy and fill."""

    def work(trace: RankTrace) -> pl.DataFrame:
        return trace.device_work.select("name", "step", time="dur_ns", calls=1)

    return _named(_sums(a, work(a)), _sums(b, work(b)), top)


def compare_groups(a: RankTrace, b: RankTrace, top: int) -> list[GroupChange]:
    """Phases and modules that both sides know."""
    phases = [_host_and_device(trace, _phases(trace)) for trace in (a, b)]
    modules = [_host_and_device(trace, place_names(trace)["module"]) for trace in (a, b)]
    return [*_grouped("phase", *phases, top=top), *_grouped("module", *modules, top=top)]


def _operator_time(trace: RankTrace) -> pl.DataFrame:
    events = trace.events
    held = events.filter(
        pl.col("op").is_not_null() & ~is_step_mark() & is_kind(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
    )
    return held.select(
        events["name"].gather(held["op"].cast(pl.UInt32)).alias("name"),
        "step",
        time="self_ns",
        calls=(pl.col("kind") == Kind.CPU_OP.value).cast(pl.Int64),
    )


def _sums(trace: RankTrace, rows: pl.DataFrame) -> dict[str, Sums]:
    """Per name and step; without steps the whole trace is one, with steps what is outside is left out."""
    width = max(trace.steps.height, 1)
    step = pl.col("step") if trace.steps.height else pl.lit(0, pl.Int32)
    grouped = (
        rows.with_columns(step=step, name=pl.col("name").fill_null(""))
        .drop_nulls("step")
        .group_by("name", "step")
        .agg(pl.col("time").sum(), pl.col("calls").sum())
    )
    found: dict[str, Sums] = {}
    for name, at, time, calls in grouped.select("name", "step", "time", "calls").iter_rows():
        sums = found.setdefault(name, Sums(np.zeros(width, np.int64), np.zeros(width, np.int64)))
        sums.time[at] = time
        sums.calls[at] = calls
    return found


def _named(a: Mapping[str, Sums], b: Mapping[str, Sums], top: int) -> list[NamedChange]:
    none = [
        Sums(np.zeros(len(next(iter(side.values())).time) if side else 1, np.int64), np.zeros(1, np.int64))
        for side in (a, b)
    ]
    changes = []
    for name in sorted(a.keys() | b.keys()):
        left, right = a.get(name, none[0]), b.get(name, none[1])
        status: Status = "common" if name in a and name in b else "added" if name in b else "removed"
        changes.append(
            NamedChange(
                name=name,
                status=status,
                calls_a=float(left.calls.mean()),
                calls_b=float(right.calls.mean()),
                time=change(left.time, right.time),
            )
        )
    return sorted(changes, key=lambda one: -abs(one.time.delta_ns))[:top]


def _grouped(by: Literal["phase", "module"], *sides: _Groups, top: int) -> Iterator[GroupChange]:
    changes = []
    for name in sorted(sides[0].keys() & sides[1].keys()):
        (host_a, device_a), (host_b, device_b) = sides[0][name], sides[1][name]
        changes.append(
            GroupChange(by=by, name=name, host=change(host_a, host_b), device=change(device_a, device_b))
        )
    yield from sorted(
        changes,
        key=lambda group_change: -max(abs(group_change.host.delta_ns), abs(group_change.device.delta_ns)),
    )[:top]


def _host_and_device(trace: RankTrace, labels: pl.Series) -> dict[str, tuple[Times, Times]]:
    events = trace.events.with_columns(label=labels).drop_nulls("label")
    host = events.filter(is_kind(*WORKING))
    work = events.filter(is_kind(*DEVICE_WORK))
    sums = [
        _sums(trace, rows.select(pl.col("label").alias("name"), "step", time="self_ns", calls=1))
        for rows in (host, work)
    ]
    none = np.zeros(max(trace.steps.height, 1), np.int64)
    return {
        name: (
            sums[0][name].time if name in sums[0] else none,
            sums[1][name].time if name in sums[1] else none,
        )
        for name in sums[0].keys() | sums[1].keys()
    }


def _phases(trace: RankTrace) -> pl.Series:
    """The phase of every event; where the program does not name its phases, what nothing else claims is forward."""
    column = phase_names(trace)
    return column if phase_labels(trace).sources[:1] == ["phase"] else column.fill_null("forward")
