"""Sequences of small memory-bound work that repeat: candidates for fusion (`torch.compile`, a custom kernel).

A sequence is 2…8 pieces of work that follow each other on a stream, none further than 50 µs behind the one before (in a
trace without device work: operators on a thread, none further behind than 50 µs or than the one before took). All are elementwise, reductions, normalisations, softmax, copies
or fills; the first may also be a matrix product or convolution, whose epilogue can take up what follows. Sequences are
chosen greedily by what they would save, and a piece of work counts in one only. Parts that all belong to one call of an
operator are no candidate: that is how the operator is made.

Gain. Fusing removes the pauses between the parts, and the traffic of what is handed from part to part:

- `gain_low_ns`: the pauses and, where shapes are known, reading the intermediate results again, as if each still had
  to be written (for backward, say). Without shapes the pauses alone. On the host the pauses are time between operators.
- `gain_high_ns`: the pauses and all traffic of intermediate results; without shapes as if the whole sequence took as
  long as its longest part. With a matrix product first, that stays as it is.

Parts that are all the same work on different data (`repeated`) hand nothing on; batching them (`foreach`) saves the
pauses alone. Traffic turns into time at the rate that the parts achieved. A pause counts up to 10 µs: a longer one has other causes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.costs.op_costs import OpCosts, op_costs
from pyrometer.trace.costs.registry import formula_of
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.kernel_names import read_name
from pyrometer.trace.program.rollup import above
from pyrometer.trace.program.where import where
from pyrometer.trace.reporting.totals import Sequence
from pyrometer.trace.rows import IntArray, row_numbers
from pyrometer.trace.trace import RankTrace

MIN_LENGTH, MAX_LENGTH = 2, 8
MIN_COUNT = 3
BREAK_NS = 50_000
"""A longer pause separates sequences."""
MAX_PAUSE_NS = 10_000
"""What of a pause fusing can save at most: about the cost of a launch."""

FUSIBLE = frozenset({"elementwise", "reduction", "norm", "softmax", "copy", "triton"})
LEADING = frozenset({"gemm", "conv", "attention"})
FUSIBLE_FAMILIES = frozenset({"elementwise", "reduction", "normalisation", "movement", "generated", "loss"})
LEADING_FAMILIES = frozenset({"matmul", "convolution", "attention"})


@dataclass(frozen=True)
class Line:
    """Work in order: by stream or thread, then by start."""

    event: IntArray
    label: IntArray  # names, numbered
    names: list[str]
    time: IntArray
    pause: IntArray  # to the next, ns; what a sequence cannot cross is -1
    fusible: npt.NDArray[np.bool_]
    leads: npt.NDArray[np.bool_]
    num_bytes: IntArray  # read and written; -1 where not known
    written: IntArray
    op: IntArray  # the operator that launched it; -1 if none


@analysis("sequences")
def sequences(trace: RankTrace, *, limit: int = 20) -> list[Sequence]:
    """Repeated sequences that could be fused, the largest predicted gain first."""
    line = _line(trace)
    if len(line.event) < MIN_LENGTH * MIN_COUNT:
        return []
    taken = np.zeros(len(line.event), dtype=bool)
    found: list[Sequence] = []
    total = max(int(line.time.sum()), 1)
    for length, starts in _candidates(line):
        first, last = line.op[starts], line.op[starts + length - 1]
        free = _disjoint(starts[(first < 0) | (first != last)], length, taken)
        if len(free) < MIN_COUNT:
            continue
        taken[(free[:, None] + np.arange(length)).ravel()] = True
        found.append(_sequence(trace, line, free, length, total))
        if len(found) >= limit:
            break
    return sorted(found, key=lambda sequence: (-sequence.gain_high_ns, sequence.parts))


def _line(trace: RankTrace) -> Line:
    costs = op_costs(trace)
    events = trace.events
    rows = events[costs.work].with_columns(time=pl.Series(costs.time))
    if not costs.has_device:
        rows = rows.filter(pl.Series(_calculate(trace, costs)))
    rows = rows.sort("track", "start_ns")
    event = rows["event"].to_numpy().astype(np.int64)
    labels = rows["name"].fill_null("")
    codes = labels.rank("dense").to_numpy().astype(np.int64) - 1 if len(labels) else np.empty(0, np.int64)
    names = labels.unique().sort().to_list()
    start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    pause = np.full(len(event), -1, np.int64)
    if len(event) > 1:
        gap = start[1:] - end[:-1]
        track = rows["track"].to_numpy()
        longest = BREAK_NS if costs.has_device else np.maximum(BREAK_NS, (end - start)[:-1])
        pause[:-1] = np.where((track[1:] == track[:-1]) & (gap <= longest), np.maximum(gap, 0), -1)
    fusible, leads = _roles(names, has_device=costs.has_device)
    copies = (rows["kind"] != Kind.KERNEL.value).to_numpy() & costs.has_device
    num_bytes, written = _traffic(costs, event)
    return Line(
        event,
        codes,
        [_short(name, has_device=costs.has_device) for name in names],
        rows["time"].to_numpy(),
        pause,
        fusible[codes] & ~copies,
        leads[codes] & ~copies,
        num_bytes,
        written,
        row_numbers(rows["op"]),
    )


def _calculate(trace: RankTrace, costs: OpCosts) -> npt.NDArray[np.bool_]:
    """Operators that calculate, without what they call themselves, such as the copy of a Python number to a tensor."""
    counted = np.zeros(len(costs.owner), dtype=bool)
    counted[costs.work] = costs.owner[costs.work] == costs.work
    outermost: npt.NDArray[np.bool_] = counted & (above(trace, counted) < 0)
    return outermost[costs.work]


def _short(name: str, *, has_device: bool) -> str:
    return read_name(name).short if has_device else name


def _roles(names: list[str], *, has_device: bool) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which names can be fused, and which can begin a fused sequence as its matrix product."""
    if has_device:
        kinds = [read_name(name).category for name in names]
        pair = [(kind in FUSIBLE, kind in LEADING) for kind in kinds]
    else:
        families = [formula.family if (formula := formula_of(name)) else "" for name in names]
        pair = [(family in FUSIBLE_FAMILIES, family in LEADING_FAMILIES) for family in families]
    table = np.array(pair, dtype=bool).reshape(len(names), 2)
    return table[:, 0], table[:, 1]


def _traffic(costs: OpCosts, event: IntArray) -> tuple[IntArray, IntArray]:
    """Bytes moved and bytes written by each piece of work; an operator's are those of its only one."""
    owner = costs.owner[event]
    kindred = np.where(owner >= 0, costs.kindred[np.maximum(owner, 0)], -1)
    moved = np.array([one.cost.num_bytes if one.cost else -1 for one in costs.kindreds] + [-1], np.int64)
    written = np.array(
        [one.cost.bytes_written if one.cost else -1 for one in costs.kindreds] + [-1], np.int64
    )
    share = np.bincount(owner[owner >= 0], minlength=len(costs.owner))
    single = (owner >= 0) & (share[np.maximum(owner, 0)] == 1)
    return np.where(single, moved[kindred], -1), np.where(single, written[kindred], -1)


def _candidates(line: Line) -> list[tuple[int, IntArray]]:
    """Starts of every repeated sequence by its length, the most promising first.

    Sequences are told apart exactly: those of n + 1 parts by the number of their first n and their last.
    """
    ways: list[tuple[float, int, IntArray]] = []
    code = line.label.copy()
    num = len(line.names)
    starts = np.flatnonzero(line.fusible | line.leads)
    prefix = np.concatenate([[0], np.cumsum(line.time)])
    pauses = np.concatenate([[0], np.cumsum(np.minimum(np.maximum(line.pause, 0), MAX_PAUSE_NS))])
    for length in range(2, MAX_LENGTH + 1):
        last = starts + length - 1
        inside = last < len(code)
        starts, last = starts[inside], last[inside]
        joined = line.fusible[last] & (line.pause[last - 1] >= 0)
        starts, last = starts[joined], last[joined]
        _, inverse, count = np.unique(
            code[starts] * num + line.label[last], return_inverse=True, return_counts=True
        )
        code = code.copy()
        code[starts] = inverse
        often = count >= MIN_COUNT
        kept = often[inverse]
        order = np.argsort(inverse, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(count)])
        spare = prefix[last + 1] - prefix[starts + 1]  # all parts but the first could vanish
        value = np.bincount(inverse, spare + pauses[last] - pauses[starts], minlength=len(count))
        ways += [
            (-float(value[i]), length, np.sort(starts[order[bounds[i] : bounds[i + 1]]]))
            for i in np.flatnonzero(often)
        ]
        starts = starts[kept]
    ways.sort(key=lambda way: (way[0], way[1], int(way[2][0])))
    return [(length, where_) for _, length, where_ in ways]


def _disjoint(starts: IntArray, length: int, taken: npt.NDArray[np.bool_]) -> IntArray:
    """Starts whose work is not taken and that do not overlap each other, from the left."""
    used = np.concatenate([[0], np.cumsum(taken)])
    starts = starts[used[starts + length] == used[starts]]
    if len(starts) < 2 or int(np.diff(starts).min()) >= length:
        return starts
    kept, until = [], -1
    for start in starts.tolist():
        if start >= until:
            kept.append(start)
            until = start + length
    return np.array(kept, np.int64)


def _sequence(trace: RankTrace, line: Line, starts: IntArray, length: int, total_ns: int) -> Sequence:
    parts = starts[:, None] + np.arange(length)
    time = line.time[parts]
    pause = int(np.minimum(line.pause[parts[:, :-1]], MAX_PAUSE_NS).sum())
    is_led = bool(line.leads[starts[0]])
    repeated = bool((line.label[parts[0]] == line.label[parts[0, 0]]).all())
    low, high, handed = (0, 0, None) if repeated else _gain(line, parts, time, is_led=is_led)
    events = trace.events
    return Sequence(
        parts=[line.names[i] for i in line.label[parts[0]].tolist()],
        ops=[events["name"][row] if row >= 0 else None for row in line.op[parts[0]].tolist()],
        kind="repeated" if repeated else "epilogue" if is_led else "chain",
        count=len(starts),
        total_ns=int(time.sum()),
        part_ns=time.sum(axis=0).tolist(),
        share=float(time.sum()) / total_ns,
        pause_ns=pause,
        intermediate_bytes=handed,
        gain_low_ns=pause + low,
        gain_high_ns=pause + high,
        num_removed=len(starts) * (length - 1),
        where=where(trace, int(line.event[parts[0, 0]])),
    )


def _gain(line: Line, parts: IntArray, time: IntArray, *, is_led: bool) -> tuple[int, int, int | None]:
    """Time of the traffic that fusing saves, at least and at most, and the bytes handed on."""
    rest = time[:, 1:] if is_led else time
    if (line.num_bytes[parts] < 0).any():
        longest = 0 if is_led else rest.max(axis=1).sum()
        return 0, int(rest.sum() - longest), None
    read = line.num_bytes[parts] - line.written[parts]
    handed = np.minimum(line.written[parts[:, :-1]], read[:, 1:])  # no more than the next part reads at all
    moved = line.num_bytes[parts[:, 1:] if is_led else parts]
    rate = rest.sum() / max(int(moved.sum()), 1)  # ns per byte of the memory-bound parts
    once = int(min(handed.sum() * rate, rest.sum()))
    return once, int(min(2 * handed.sum() * rate, rest.sum())), int(handed.sum())
