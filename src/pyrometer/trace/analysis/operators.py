"""Operator tables: what `key_averages` of the profiler gives, and more, as a Polars frame.

Definitions, for one call of an operator:

- host total: its duration. Host self: the part of it in which no nested operator runs; calls of the runtime and Python
  functions below it are its own (`runtime_ns` says how much of it was runtime and driver calls; without these, host self
  is the profiler's `self_cpu_time`);
- device self: durations of the kernels, copies and fills that it launched itself (linked by correlation, else by
  `External id`). Device total: those of the operators below it, too.

Rows sum calls. An operator within another one of the same row (recursion, or all operators of one module) counts in
`calls` and in the self times, but not in the totals: the outer one holds its time already. So over a whole table
`host_self_ns` sums exactly to the time in which any operator is open, thread by thread, and `device_self_ns` to the work
that operators launched; what other host events took beside them is in `user_lines` and `call_tree`.

Backward operators belong to the module, line or stack of their forward operator, found by `Sequence number`.
`forward_ns` and `backward_ns` part the host self time, `forward_device_ns` and `backward_device_ns` the device's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind
from pyrometer.trace.program.phase_labels import phase_names
from pyrometer.trace.program.rollup import codes, gather_into, is_operator, is_repeated, roll_up
from pyrometer.trace.program.stacks import python_stacks
from pyrometer.trace.program.where import places_of
from pyrometer.trace.rows import IntArray, positions, row_numbers
from pyrometer.trace.trace import RankTrace, kept

By = Literal["op", "shape", "module", "line", "phase", "stack"]


class OpRows(NamedTuple):
    """The operators of a trace, and which of them every event belongs to."""

    event: IntArray  # rows of `events`
    owner: IntArray  # the operator around each, as an index of `event`; -1
    of_event: (
        IntArray  # for each row of `events` the innermost operator at or above it, as an index of `event`; -1
    )


@analysis("operators")
def operators(trace: RankTrace, *, by: By = "op") -> pl.DataFrame:
    """Operators: calls, self and total time on host and device; by op, shape, module, line, phase or stack.

    Args:
        trace: one rank.
        by: what makes a row. `op`: `name`; `shape`: `name, input_dims, input_types`; `module`: `module`; `line`: `file,
            line, function` of the user's own code; `phase`: `phase`; `stack`: `stack`, the Python functions, innermost
            first.

    Returns:
        The key columns, null where the trace does not say, then `calls, host_self_ns, host_total_ns, runtime_ns,
        device_self_ns, device_total_ns, min_ns, mean_ns, max_ns` (host duration of a call), `num_kernels` (at or below),
        `forward_ns, backward_ns, forward_device_ns, backward_device_ns, host_share, device_share` (self time over the
        span of the trace; devices and threads that run at once add up). The largest self time on devices first, then on
        the host.

    Raises:
        InputError: `by` is none of these.
    """
    if by not in KEYS:
        raise InputError(f"by={by!r}: operators are grouped by {', '.join(get_args(By))}")
    ops = op_rows(trace)
    keys = KEYS[by](trace, ops)
    key = codes(keys)
    table = keys.hstack(_per_call(trace, ops, is_repeated(key, ops.owner)))
    span = max(trace.activity.span_ns, 1)
    return (
        table.group_by(keys.columns, maintain_order=True)
        .agg(
            pl.len().alias("calls"),
            pl.col(
                "host_self_ns",
                "host_total_ns",
                "runtime_ns",
                "device_self_ns",
                "device_total_ns",
            ).sum(),
            min_ns=pl.col("dur_ns").min(),
            mean_ns=pl.col("dur_ns").mean(),
            max_ns=pl.col("dur_ns").max(),
            num_kernels=pl.col("num_kernels").sum(),
            forward_ns=pl.col("host_self_ns").filter(~pl.col("is_backward")).sum(),
            backward_ns=pl.col("host_self_ns").filter("is_backward").sum(),
            forward_device_ns=pl.col("device_self_ns").filter(~pl.col("is_backward")).sum(),
            backward_device_ns=pl.col("device_self_ns").filter("is_backward").sum(),
        )
        .with_columns(
            host_share=pl.col("host_self_ns") / span,
            device_share=pl.col("device_self_ns") / span,
        )
        .sort("device_self_ns", "host_self_ns", descending=True, maintain_order=True)
    )


@kept
def op_rows(trace: RankTrace) -> OpRows:
    """The operators of a trace; marks of steps, which old files write as operators, are none."""
    events = trace.events
    is_op = is_operator(trace)
    event = np.flatnonzero(is_op)
    index = positions(event, events.height)
    linked = index[row_numbers(events["op"])]
    enclosing = index[trace.nearest(is_op)]
    of_event = np.where(enclosing >= 0, enclosing, linked)
    parent = trace.parent[event]
    return OpRows(event, np.where(parent >= 0, of_event[parent], -1), of_event)


def _per_call(trace: RankTrace, ops: OpRows, repeated: np.ndarray) -> pl.DataFrame:
    """One row per operator; totals are 0 where an operator of the same row lies around it."""
    events = trace.events
    depth = row_numbers(trace.events["depth"])[ops.event]
    nothing = np.zeros(len(ops.event), np.int64)

    def own(kinds: tuple[Kind, ...], column: str) -> IntArray:
        chosen = trace.are(*kinds)
        return gather_into(nothing.copy(), ops.of_event[chosen], events[column].to_numpy()[chosen])

    device = own(DEVICE_WORK, "dur_ns")
    kernels = trace.are(Kind.KERNEL)
    launched = gather_into(nothing.copy(), ops.of_event[kernels], np.ones(int(kernels.sum()), np.int64))
    below = roll_up(np.stack([device, launched], axis=1), ops.owner, depth)
    dur = events["dur_ns"].to_numpy()[ops.event]
    return pl.DataFrame(
        {
            "dur_ns": dur,
            "host_self_ns": own(HOST, "self_ns"),
            "host_total_ns": np.where(repeated, 0, dur),
            "runtime_ns": own((Kind.RUNTIME, Kind.DRIVER), "self_ns"),
            "device_self_ns": device,
            "device_total_ns": np.where(repeated, 0, below[:, 0]),
            "num_kernels": np.where(repeated, 0, below[:, 1]),
            "is_backward": trace.places.backward[ops.event] >= 0,
        }
    )


def _names(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return trace.events.select("name")[ops.event]


def _shapes(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    one_line = pl.col("input_dims", "input_types").str.replace_all(r"\n\s*", "")
    arguments = trace.tables["ops"].select("event", one_line)
    calls = trace.events.select("event", "name")[ops.event]
    return calls.join(arguments, on="event", how="left", maintain_order="left").drop("event")


def _lines(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return _places(trace, ops).select("file", "line", "function")


def _modules(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return _places(trace, ops).select("module")


def _places(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return places_of(trace, pl.Series(ops.event))


def _phases(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return phase_names(trace).gather(pl.Series(ops.event, dtype=pl.UInt32)).to_frame("phase")


def _stacks(trace: RankTrace, ops: OpRows) -> pl.DataFrame:
    return python_stacks(trace, ops.event).to_frame("stack")


KEYS: MappingProxyType[str, Callable[[RankTrace, OpRows], pl.DataFrame]] = MappingProxyType(
    {
        "op": _names,
        "shape": _shapes,
        "module": _modules,
        "line": _lines,
        "phase": _phases,
        "stack": _stacks,
    }
)
"""The key columns of each way of grouping, one row per operator."""
