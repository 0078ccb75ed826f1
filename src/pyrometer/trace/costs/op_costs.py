"""FLOP, bytes and time of every operator call of a trace, nothing counted twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.costs.call import NotRecordedError, parse_call
from pyrometer.trace.costs.movement import FREE
from pyrometer.trace.costs.registry import Cost, cost_of, formula_of, formulas
from pyrometer.trace.costs.tensors import DTYPES
from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_op
from pyrometer.trace.linking.engines import served
from pyrometer.trace.naming.engine_names import EngineStep
from pyrometer.trace.program.rollup import above
from pyrometer.trace.rows import IntArray, row_numbers
from pyrometer.trace.trace import RankTrace, kept

SERVED = "served_attention"
"""Family of formulas that need the lengths of the sequences."""

ARGUMENTS = ("name", "input_dims", "input_types", "input_strides", "concrete_inputs")


class Kindred(NamedTuple):
    """Calls with the same name and arguments."""

    name: str
    dims: str | None
    types: str | None
    strides: str | None
    cost: Cost | None
    reason: str | None  # why there is no cost


@dataclass(frozen=True)
class OpCosts:
    """Which operator's formula stands for which event.

    On a device an event is a kernel, copy or fill and its time its duration; in a trace without device work it is an
    operator and its time its own. Each belongs to the innermost operator at or above it that has a formula, so that
    `aten::linear` does not count where `aten::addmm` does.
    """

    kindreds: list[Kindred]
    kindred: IntArray  # per event: row of `kindreds`; -1 for what is no operator
    owner: IntArray  # per event: the operator whose formula stands for it; -1 if none
    work: IntArray  # events that take the time
    time: IntArray  # ns, of each of these
    has_device: bool


@kept
def op_costs(trace: RankTrace) -> OpCosts:
    """The costs of one rank's operators; kept with the trace."""
    events = trace.events
    kindreds, kindred = _kindreds(trace)
    has_cost = np.array([one.cost is not None for one in kindreds] + [False], dtype=bool)[kindred]
    counted = _counted(trace, kindreds, kindred, has_cost)
    holder = trace.nearest(counted)
    device = trace.are(*DEVICE_WORK)
    has_device = bool(device.any())
    work = np.flatnonzero(device if has_device else trace.are(Kind.CPU_OP))
    op = row_numbers(events["op"])[work]
    owner = np.full(len(kindred), -1, np.int64)
    owner[work] = np.where(op >= 0, holder[np.maximum(op, 0)], -1) if len(kindred) else -1
    time = events["dur_ns" if has_device else "self_ns"].to_numpy()[work]
    return OpCosts(kindreds, kindred, owner, work, time.astype(np.int64), has_device)


def _kindreds(trace: RankTrace) -> tuple[list[Kindred], IntArray]:
    """Calls that are alike, evaluated once."""
    steps = served(trace.steps, trace.events)
    ops = trace.tables["ops"].join(
        trace.events.select("event", "kind", "cat", "name", "step")
        .filter(is_op())
        .select("event", "name", _serving(steps)),
        on="event",
        how="inner",
    )
    groups = ops.group_by(*ARGUMENTS, "serving", maintain_order=True).agg("event")
    list_dtype = _usual_dtype(groups)
    kindreds = [
        _evaluate(*row, list_dtype=list_dtype, serving=None if step is None else steps[step])
        for *row, step in groups.select(*ARGUMENTS, "serving").iter_rows()
    ]
    kindred = np.full(trace.events.height, -1, np.int64)
    members = groups["event"]
    which = np.repeat(np.arange(groups.height), members.list.len().to_numpy())
    kindred[members.explode().drop_nulls().to_numpy() if groups.height else []] = which
    return kindreds, kindred


def _serving(steps: list[EngineStep]) -> pl.Expr:
    """The first step of an engine with the same requests; of calls alone whose cost depends on that."""
    first = {step: i for i, step in reversed(list(enumerate(steps)))}
    alike = pl.col("step").replace_strict([*range(len(steps))], [first[step] for step in steps], default=None)
    names = [name for name, formula in formulas().items() if formula.family == SERVED]
    attends = pl.col("name").is_in(names) | pl.col("name").str.starts_with("sglang_profiler::")
    if steps:
        return pl.when(attends).then(alike).cast(pl.Int32).alias("serving")
    return pl.lit(None, pl.Int32).alias("serving")


def _evaluate(
    name: str | None,
    dims: str | None,
    types: str | None,
    strides: str | None,
    concrete: str | None,
    *,
    list_dtype: str,
    serving: EngineStep | None = None,
) -> Kindred:
    if name is None or name in FREE or formula_of(name) is None:
        why = "a view, an allocation or a mere wrapper" if name in FREE else "no formula for this operator"
        return Kindred(name or "", dims, types, strides, None, why)
    try:
        cost = cost_of(
            parse_call(name, dims, types, strides, concrete, list_dtype=list_dtype, serving=serving)
        )
    except NotRecordedError as missing:
        return Kindred(name, dims, types, strides, None, str(missing))
    return Kindred(name, dims, types, strides, cost, None)


def _usual_dtype(groups: pl.DataFrame) -> str:
    """The floating type of most kinds of call, for lists of tensors, whose type the profiler does not write."""
    texts = groups["input_types"].drop_nulls()
    counts = {
        torch_name: int(texts.str.contains(f'"{spelt}"', literal=True).sum())
        for spelt, torch_name in DTYPES.items()
        if torch_name in {"float32", "float64", "float16", "bfloat16"}
    }
    counts["float32"] += 1  # where nothing is recorded, or as often
    return max(counts, key=counts.__getitem__)


def _counted(
    trace: RankTrace, kindreds: list[Kindred], kindred: IntArray, has_cost: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Operators whose formula counts: wrappers only where nothing below has one, nor one that calls itself."""
    rows = np.flatnonzero(has_cost)
    upper = above(trace, has_cost)[rows]
    below, upper = rows[upper >= 0], upper[upper >= 0]
    wraps = np.array([one.cost is not None and _wraps(one.name) for one in kindreds] + [False], dtype=bool)
    names = np.array([hash(one.name) for one in kindreds] + [0])
    same = names[kindred[below]] == names[kindred[upper]]
    counted: npt.NDArray[np.bool_] = has_cost.copy()
    counted[upper[wraps[kindred[upper]] | same]] = False
    return counted


def _wraps(name: str) -> bool:
    formula = formula_of(name)
    return formula is not None and formula.wraps
