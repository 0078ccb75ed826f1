"""Which phase of a step an event belongs to: by annotations `phase:<name>`, or else read from what the trace holds.

Without such annotations, the innermost mark around an event decides; what is named later only fills what is left.

1. `annotation`: the user's own annotations that are called like a phase (`## forward ##`, `backward pass`), and
   `DistributedDataParallel.forward`;
2. `optimizer`: `Optimizer.step#…` and `Optimizer.zero_grad#…`, which torch writes; `loader`: `enumerate(DataLoader)#…`;
3. `autograd`: operators of the backward pass, on whatever thread, and the Python call that waits for them;
4. `module`: an outermost call of an `nn.Module` is forward;
5. `copy`: an outermost operator that copies from host to device is h2d;
6. `order`, where no forward was found so far: an outermost operator that comes before the backward pass of its step is
   forward; in a trace without a backward pass, all are, unless most of them lie in modules.

`source` is the first of these that found the phase.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.linking.places import module_calls
from pyrometer.trace.naming.copy_names import copy_direction
from pyrometer.trace.naming.patterns import PHASE, is_data_loading
from pyrometer.trace.program.rollup import above, is_operator
from pyrometer.trace.records.breakdown import Source
from pyrometer.trace.rows import IntArray, Mask, pick, row_numbers
from pyrometer.trace.trace import RankTrace, kept

OWN_NAME = (
    r"(?i)^\W*(?:(?:train|training|model|step|train_step|training_step)[ _:./]+)?"
    r"(forward|backward|optimizer|zero_grad|loss|data|h2d|validation|eval|checkpoint|logging)"
    r"(?:[ _](?:pass|step|load|loading|loader|fn))?\W*$"
)
"""Annotations that users call like a phase."""

WAITS_FOR_AUTOGRAD = (
    r"(^|/)torch/(_tensor|autograd/__init__|autograd/graph)\.py\(\d+\): (backward|_engine_run_backward)$"
)


class PhaseLabels(NamedTuple):
    """The phases of a trace, in the order in which they first occur, and the phase of every event."""

    names: list[str]
    sources: list[Source]
    code: IntArray  # of each event, an index of the two lists; -1 where it is in no phase


@kept
def phase_labels(trace: RankTrace) -> PhaseLabels:
    """The phase of every event; see the module's text for how it is found."""
    return _annotated(trace) if (trace.places.phase >= 0).any() else _derived(trace)


def phase_names(trace: RankTrace) -> pl.Series:
    """The name of the phase of every event, null where it is in none."""
    labels = phase_labels(trace)
    return pick(pl.Series("phase", labels.names, dtype=pl.String), labels.code)


class _Builder:
    """Collects marks, rows of `events`, by what they mean and what says so."""

    def __init__(self, num_events: int) -> None:
        self.found: dict[tuple[str, Source], int] = {}
        self.code = np.full(num_events, -1, np.int64)

    def mark(self, rows: IntArray, name: str, source: Source) -> None:
        if len(rows):
            self.code[rows] = self.found.setdefault((name, source), len(self.found))

    def has(self, name: str) -> bool:
        """Whether anything has been called so."""
        return any(found == name for found, _ in self.found)

    def fill(self, mask: Mask, marks: IntArray, name: str, source: Source) -> None:
        """Label what has no label and lies at or below a mark."""
        rows = np.flatnonzero(mask & (marks >= 0) & (self.code < 0))
        self.mark(rows, name, source)

    def labels(self) -> PhaseLabels:
        """Each name once, with the first thing that said so; in order of first occurrence."""
        rows = np.flatnonzero(self.code >= 0)
        codes, first = np.unique(self.code[rows], return_index=True)
        keys = list(self.found)
        names: dict[str, int] = {}
        sources: dict[str, Source] = {}
        for code in codes[np.argsort(first)].tolist():
            name, source = keys[code]
            names.setdefault(name, len(names))
            sources[name] = min(sources.get(name, source), source, key=get_args(Source).index)
        code_of = np.array([*(names.get(name, -1) for name, _ in keys), -1], np.int64)
        return PhaseLabels(list(names), list(sources.values()), code_of[self.code])


def _annotated(trace: RankTrace) -> PhaseLabels:
    at = trace.places.phase
    names = pick(trace.events["name"], at).str.strip_prefix(PHASE)
    builder = _Builder(len(at))
    table = pl.DataFrame({"row": np.arange(len(at)), "name": names}).filter(pl.Series(at >= 0))
    for name, part in table.group_by("name", maintain_order=True):
        builder.mark(part["row"].to_numpy(), str(name[0]), "phase")
    return builder.labels()


def _derived(trace: RankTrace) -> PhaseLabels:
    builder = _Builder(trace.events.height)
    _mark(trace, builder)
    marks = trace.nearest(builder.code >= 0)
    builder.code = np.where(marks >= 0, builder.code[marks], -1)
    everywhere = np.ones(trace.events.height, bool)
    is_op = is_operator(trace)
    outermost = trace.nearest(is_op & (above(trace, is_op) < 0))
    if ("forward", "annotation") not in builder.found:
        calls = module_calls(trace.sorts)
        builder.fill(everywhere, trace.nearest(calls & (above(trace, calls) < 0)), "forward", "module")
    builder.fill(everywhere, np.where(_copying(trace, outermost), outermost, -1), "h2d", "copy")
    rest = _before_backward(trace, outermost)
    if _wanted(builder, is_op & rest):
        builder.fill(rest, outermost, "forward", "order")
    return builder.labels()


def _wanted(builder: _Builder, candidates: Mask) -> bool:
    """Whether no forward was found so far, or only little of it beside all the operators that could be forward."""
    forward = [code for (name, _), code in builder.found.items() if name == "forward"]
    if ("forward", "annotation") in builder.found or (forward and builder.has("backward")):
        return False
    return bool(np.isin(builder.code[candidates], forward).sum() < (builder.code[candidates] < 0).sum())


def _mark(trace: RankTrace, builder: _Builder) -> None:
    host = is_kind(Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION, Kind.CPU_OP)
    name = pl.col("name")
    annotation = pl.col("kind") == Kind.USER_ANNOTATION.value
    function = pl.col("kind") == Kind.PYTHON_FUNCTION.value

    def rows(chosen: pl.Expr) -> IntArray:
        return np.flatnonzero(trace.mask(host & chosen))

    backward = np.flatnonzero(trace.places.backward == np.arange(trace.events.height))
    builder.mark(backward, "backward", "autograd")
    builder.mark(rows(function & name.str.contains(WAITS_FOR_AUTOGRAD)), "backward", "autograd")
    builder.mark(rows(is_data_loading()), "data", "loader")
    builder.mark(rows(name.str.starts_with("Optimizer.step#")), "optimizer", "optimizer")
    builder.mark(rows(name.str.starts_with("Optimizer.zero_grad#")), "zero_grad", "optimizer")
    builder.mark(rows(annotation & (name == "DistributedDataParallel.forward")), "forward", "annotation")
    own = trace.named(annotation & name.str.contains(OWN_NAME)).with_columns(
        phase=name.str.extract(OWN_NAME).str.to_lowercase()
    )
    for phase, part in own.group_by("phase", maintain_order=True):
        builder.mark(part["event"].to_numpy().astype(np.int64), str(phase[0]), "annotation")


def _copying(trace: RankTrace, outermost: IntArray) -> Mask:
    """Which events lie at or below an outermost operator that copies from host to device."""
    copies = trace.chosen(trace.of_kind(Kind.MEMCPY), copy_direction() == "H2D")
    copying = np.zeros(len(outermost) + 1, bool)
    copying[outermost[copies["event"].to_numpy()]] = True
    copying[-1] = False
    return np.asarray(copying[outermost], np.bool_)


def _before_backward(trace: RankTrace, outermost: IntArray) -> Mask:
    """Which events lie in an operator that begins before the backward pass of its step; without one, all that do."""
    start = trace.events["start_ns"].to_numpy()
    step = row_numbers(trace.events["step"])
    backward = np.flatnonzero(trace.places.backward == np.arange(len(start)))
    if not len(backward):
        return outermost >= 0
    first = np.full(trace.steps.height + 1, np.iinfo(np.int64).min)  # the last one is outside of all steps
    order = backward[::-1]  # rows are in order of start: the first one is written last
    first[step[order]] = start[order]
    return np.asarray((outermost >= 0) & (start[outermost] < first[step[outermost]]), np.bool_)
