"""Where steps begin and end: what the profiler marked, or else what repeats.

Of these the first that gives steps is taken; `source` says which it was.

0. `engine`: annotations in which an inference engine says what a step serves, unless the profiler marked more steps than these;
1. `profiler`: `ProfilerStep#3` annotations, in old files operators; of several threads the one with the most of them.
2. `optimizer`: from the end of one `Optimizer.step#…` to the end of the next; of optimizers that take turns the last one
   of the cycle closes the step.
3. `loader`: from one `enumerate(DataLoader)#….__next__` to the next.
4. `annotation`: a user's own annotations that repeat, alone (`step 17`) or in turns (`forward`, `backward`).
5. `cycle`: the sequence of outermost calls of `nn.Module`s repeats, or else that of outermost operators of a thread;
   without operators that of device work, in order of launch.

Steps of 2 to 5 follow each other without a gap. What comes before the first or after the last mark becomes a step when it
holds as much work as the others do. For 4 and 5 at least three repetitions are asked for, and what repeats must not be
the layers of one model: those lie within one call of an `nn.Module`, or have other operators before or after them (an
embedding, a head), while a loop fills the recording or talks to the host (copies, synchronisation) in every repetition. A stack of at least three equal
layers without anything before or after it cannot be told from a loop, unless modules were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import polars as pl

from pyrometer.trace import schema
from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.linking.cycles import Cycle, find_cycle, find_cycle_of_runs
from pyrometer.trace.linking.engines import engine_marks
from pyrometer.trace.linking.launches import Launches
from pyrometer.trace.naming.copy_names import between_host_and_device
from pyrometer.trace.naming.patterns import (
    is_blocking_call,
    is_communication,
    is_data_loading,
    is_host_communication,
    is_module,
    is_step_mark,
)
from pyrometer.trace.rows import IntArray
from pyrometer.workload.script.cycles import closings

Source = Literal["engine", "profiler", "optimizer", "loader", "annotation", "cycle"]

OPTIMIZER = r"^Optimizer\.step#"
LOADER = r"^enumerate\(DataLoader\)#.*__next__"

INTERNAL = (
    r"CompiledFxGraph|^Torch-Compiled Region|^Pregraph bytecode|^TorchDynamo|^Inductor|^AOTDispatcher"
    r"|^torch_tensorrt|^Optimizer\.|^module:|^ProfilerStep|^\[memory\]"
)
"""Annotations that the framework makes, once per graph or module and not per step."""

ENOUGH = 0.9
"""Share of the usual number of operators that makes an end piece a step."""

MIN_COVERAGE = 0.8
"""Share of a sequence that must repeat; half of it is enough where every repetition talks to the host."""

MIN_DISTINCT = 3
"""A repetition of fewer different operators may as well be a layer: Linear, ReLU, Linear, ReLU, …."""

MAIN_SHARE = 0.25
"""A thread that does less than this share of the busiest one's work does not say what a step is."""

MAX_LEVELS = 4


def find_steps(events: pl.DataFrame, launches: Launches | None = None) -> pl.DataFrame:
    """The steps of one rank, in order; without a mark and without a cycle there are none."""
    marked, engine = _marked(events), engine_marks(events)
    if engine.height and engine.height >= marked.height:
        return _table(events, engine["label"], engine["start_ns"], engine["end_ns"], "engine")
    if marked.height:
        return _table(events, marked["name"], marked["start_ns"], marked["end_ns"], "profiler")
    found: tuple[tuple[Source, Iterator[IntArray]], ...] = (
        ("optimizer", _by_optimizer(events)),
        ("loader", _by_loader(events)),
        ("annotation", _by_annotations(events)),
        ("cycle", _by_cycle(events, launches)),
    )
    for source, proposals in found:
        for bounds in proposals:
            names = pl.Series([f"step {i}" for i in range(len(bounds) - 1)], dtype=pl.String)
            return _table(events, names, pl.Series(bounds[:-1]), pl.Series(bounds[1:]), source)
    return schema.empty(schema.STEPS)


def step_of(steps: pl.DataFrame, start_ns: IntArray) -> IntArray:
    """The step in which each moment lies; -1 outside of all."""
    if not steps.height:
        return np.full(len(start_ns), -1, np.int64)
    found = np.searchsorted(steps["start_ns"].to_numpy(), start_ns, side="right") - 1
    inside = (found >= 0) & (start_ns < steps["end_ns"].to_numpy()[np.maximum(found, 0)])
    return np.asarray(np.where(inside, found, -1), np.int64)


def _table(
    events: pl.DataFrame, name: pl.Series, start: pl.Series, end: pl.Series, source: Source
) -> pl.DataFrame:
    return pl.DataFrame({"name": name, "start_ns": start, "end_ns": end}).select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("step"),
        pl.lit(events["rank"][0], pl.Int32).alias("rank"),
        "name",
        "start_ns",
        "end_ns",
        pl.lit(source).alias("source"),
    )


def _marked(events: pl.DataFrame) -> pl.DataFrame:
    """The profiler's marks, of one thread, without overlap."""
    rows = events.filter(
        is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP, Kind.GPU_USER_ANNOTATION) & is_step_mark()
    )
    host = rows.filter(pl.col("kind") != Kind.GPU_USER_ANNOTATION.value)
    marks = host if host.height else rows
    if not marks.height:
        return marks
    busiest = events["track"].value_counts(name="events")
    per_track = marks.group_by("track").agg(marks=pl.col("name").n_unique()).join(busiest, on="track")
    main = per_track.sort("marks", "events", "track", descending=[True, True, False])["track"][0]
    mine = marks.filter(pl.col("track") == main).unique("name", keep="first", maintain_order=True)
    following = pl.col("start_ns").shift(-1)
    return (
        mine.sort("start_ns")
        .with_columns(end_ns=pl.min_horizontal("end_ns", following))
        .filter(pl.col("end_ns") > pl.col("start_ns"))
    )


def _by_optimizer(events: pl.DataFrame) -> Iterator[IntArray]:
    marks = _busiest_track(_host(events).filter(pl.col("name").str.contains(OPTIMIZER)))
    if marks.height < 2:
        return
    ids = marks["name"].rank("dense").to_numpy().astype(np.int64)
    turns = int(ids.max())  # two repetitions are few for `closings`, but strict turns need no more
    in_turn = bool((ids[turns:] == ids[:-turns]).all()) and len(ids) % turns == 0
    last = np.arange(turns - 1, len(ids), turns) if in_turn else closings(ids)
    yield from _with_ends(events, marks["end_ns"].to_numpy()[last].astype(np.int64))


def _by_loader(events: pl.DataFrame) -> Iterator[IntArray]:
    marks = _busiest_track(_host(events).filter(pl.col("name").str.contains(LOADER)))
    if marks.height >= 2:
        yield from _with_ends(events, marks["start_ns"].to_numpy().astype(np.int64))


def _by_annotations(events: pl.DataFrame) -> Iterator[IntArray]:
    """Annotations that take turns, level by level from the outermost."""
    own = events.filter(
        (pl.col("kind") == Kind.USER_ANNOTATION.value)
        & ~pl.col("name").str.contains(INTERNAL)
        & ~is_communication()
        & ~is_host_communication()
    )
    level = _busiest_track(own)
    for _ in range(MAX_LEVELS):
        outermost = level.filter(_is_outermost())
        names = outermost["name"].str.replace_all(r"\d+", "#")
        cycle = find_cycle(names.rank("dense").to_numpy().astype(np.int64)) if len(names) else None
        if cycle is not None:
            bounds = _bounds(outermost, cycle)
            work = _tops(events).filter(pl.col("track") == outermost["track"][0])
            if _covers(bounds, work) and not _within_module(events, bounds, int(outermost["track"][0])):
                yield from _with_ends(events, bounds[:-1])
        level = level.filter(~_is_outermost())


def _by_modules(events: pl.DataFrame) -> Iterator[IntArray]:
    """Outermost calls of an `nn.Module`: the same model again and again is a loop, whatever its layers look like."""
    calls = _busiest_track(events.filter(is_module().fill_null(value=False)).filter(_is_outermost()))
    cycle = find_cycle(calls["name"].rank("dense").to_numpy().astype(np.int64)) if calls.height else None
    if cycle is not None and cycle.coverage >= MIN_COVERAGE:
        yield _bounds(calls, cycle)


def _by_cycle(events: pl.DataFrame, launches: Launches | None) -> Iterator[IntArray]:
    yield from _by_modules(events)
    tops = _tops(events)
    if not tops.height:
        tops = _launched(events, launches)
    order = tops.group_by("track").agg(busy=(pl.col("end_ns") - pl.col("start_ns")).sum())
    main = order.filter(pl.col("busy") >= MAIN_SHARE * pl.col("busy").max()).sort("busy", descending=True)
    for track in main["track"].to_list():
        line = tops.filter(pl.col("track") == track)
        cycle = find_cycle_of_runs(line["name"].rank("dense").fill_null(0).to_numpy().astype(np.int64))
        if cycle is None or not _is_loop(events, line, cycle):
            continue
        bounds = _bounds(line, cycle)
        if cycle.stop >= line.height:  # the host may wait for the device after the last operator
            bounds[-1] = events.filter(pl.col("track") == track)["end_ns"].to_numpy().max()
        if not _within_module(events, bounds, track):
            yield bounds


def _is_loop(events: pl.DataFrame, line: pl.DataFrame, cycle: Cycle) -> bool:
    """Whether repetitions are iterations and not the layers of one model."""
    pattern = line["name"][int(cycle.starts[0]) : int(cycle.starts[1])]
    if pattern.n_unique() < MIN_DISTINCT:
        return False
    if cycle.before == cycle.rest == 0 and cycle.coverage >= MIN_COVERAGE:
        return True
    return cycle.coverage >= MIN_COVERAGE / 2 and _talks_to_host(events, _bounds(line, cycle))


def _talks_to_host(events: pl.DataFrame, bounds: IntArray) -> bool:
    """Whether the host copies or waits in nearly every repetition."""
    calls = events.filter(
        (is_kind(Kind.RUNTIME, Kind.DRIVER, Kind.CPU_OP) & is_blocking_call())
        | ((pl.col("kind") == Kind.MEMCPY.value) & between_host_and_device())
    )
    held = np.histogram(calls["start_ns"].to_numpy(), bounds)[0]
    return bool((held > 0).mean() >= ENOUGH)


def _within_module(events: pl.DataFrame, bounds: IntArray, track: int) -> bool:
    """Whether one call of a module goes on over the border of most repetitions."""
    modules = events.filter(is_module() & (pl.col("track") == track))
    inner = bounds[1:-1]
    if not modules.height or not len(inner):
        return False
    started = np.searchsorted(np.sort(modules["start_ns"].to_numpy()), inner, side="left")
    ended = np.searchsorted(np.sort(modules["end_ns"].to_numpy()), inner, side="right")
    return bool((started > ended).mean() > 0.5)


def _covers(bounds: IntArray, work: pl.DataFrame) -> bool:
    """Whether most operators of the thread lie between the first and the last border."""
    inside = work["start_ns"].is_between(int(bounds[0]), int(bounds[-1])).sum()
    return bool(inside >= MIN_COVERAGE * work.height)


def _bounds(line: pl.DataFrame, cycle: Cycle) -> IntArray:
    starts = line["start_ns"].to_numpy()
    end = starts[cycle.stop] if cycle.stop < len(starts) else line["end_ns"].to_numpy().max()
    return np.append(starts[cycle.starts], end).astype(np.int64)


def _with_ends(events: pl.DataFrame, bounds: IntArray) -> Iterator[IntArray]:
    """Borders, with the pieces before and after them where these are whole steps; at least two steps."""
    work = _host(events).filter(pl.col("kind") == Kind.CPU_OP.value)
    if not work.height:
        work = _host(events)
    counted = pl.concat(
        [work, _host(events).filter(is_data_loading())]
    )  # a step begins with the wait for its data
    low, high = int(counted["start_ns"].min()), int(counted["end_ns"].max())  # type: ignore[arg-type]
    amounts = np.histogram(work["start_ns"].to_numpy(), np.unique(np.concatenate([[low], bounds, [high]])))[0]
    head, tail = bool(bounds[0] > low), bool(bounds[-1] < high)
    inner = amounts[int(head) : len(amounts) - int(tail)]
    usual = float(np.median(inner)) if len(inner) else float(amounts.max(initial=0))
    if head and amounts[0] >= ENOUGH * usual:
        bounds = np.concatenate([[low], bounds])
    if tail and amounts[-1] >= ENOUGH * usual:
        bounds = np.concatenate([bounds, [high]])
    if len(bounds) > 2:
        yield bounds.astype(np.int64)


def _host(events: pl.DataFrame) -> pl.DataFrame:
    return events.filter(is_kind(Kind.CPU_OP, Kind.USER_ANNOTATION))


def _busiest_track(marks: pl.DataFrame) -> pl.DataFrame:
    if not marks.height:
        return marks
    main = marks["track"].value_counts().sort("count", "track", descending=[True, False])["track"][0]
    return marks.filter(pl.col("track") == main)


def _is_outermost() -> pl.Expr:
    return (pl.col("start_ns") >= pl.col("end_ns").cum_max().shift().over("track")).fill_null(value=True)


def _tops(events: pl.DataFrame) -> pl.DataFrame:
    """Operators that no other operator of their thread encloses."""
    return events.filter(pl.col("kind") == Kind.CPU_OP.value).filter(_is_outermost())


def _launched(events: pl.DataFrame, launches: Launches | None) -> pl.DataFrame:
    """Device work in order of launch, at the times of the launching calls; unlinked, in order of start per stream."""
    columns = ("name", "track", "start_ns", "end_ns")
    if launches is not None and len(launches.work):
        calls = events[launches.call].select("track", "start_ns", "end_ns")
        work = events[launches.work].select("name", "kind")
        return (
            calls.hstack(work)
            .filter(is_kind(*DEVICE_WORK))
            .sort("start_ns", maintain_order=True)
            .select(columns)
        )
    return events.filter(is_kind(*DEVICE_WORK)).select(columns)
