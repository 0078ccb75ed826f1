"""Time per `nn.Module`: forward and backward, host and device, self and total.

Calls are `module:<qualified name>` annotations of our own capture; where there are none, `nn.Module: Linear_0` of the
profiler's Python tracer (`with_stack`), which numbers the modules of a class in the order in which it meets them.

Time belongs to the innermost module around it. Backward work belongs to the call whose forward operator recorded it, found
by `Sequence number`, so that a module's backward time shows although autograd knows no modules.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind
from pyrometer.trace.linking.places import module_calls
from pyrometer.trace.naming.patterns import module_names
from pyrometer.trace.program.rollup import above, gather_into, is_repeated, roll_up
from pyrometer.trace.rows import IntArray, pick, positions, row_numbers
from pyrometer.trace.trace import RankTrace

FIGURES = ("forward_ns", "backward_ns", "forward_device_ns", "backward_device_ns", "num_kernels")


@analysis("modules")
def modules(trace: RankTrace) -> pl.DataFrame:
    """The tree of modules: calls, forward and backward time on host and device, with and without submodules.

    Returns:
        One row per module, in the order of their first calls, which puts submodules below their module: `module, parent,
        depth, calls, num_recomputed, mean_ns, host_self_ns, host_total_ns, device_self_ns, device_total_ns, forward_ns,
        backward_ns, forward_device_ns, backward_device_ns, num_kernels, host_share, device_share`. `parent` is the module
        that calls it most often; `num_recomputed` counts calls within the backward pass (activation checkpoints), whose
        time is backward; `mean_ns` is the host duration of a call. Totals hold the submodules, and so do the four figures
        that part them by forward and backward. A module that calls itself counts once. Shares are totals over the span.
    """
    calls = module_calls(trace.sorts)
    rows = np.flatnonzero(calls)
    index = positions(rows, trace.events.height)
    owner = index[above(trace, calls)[rows]]
    own = _own(trace, index[trace.places.module], len(rows))
    total = roll_up(own, owner, row_numbers(trace.events["depth"])[rows])
    names = module_names(trace.events["name"][rows])
    key = names.rank("dense").fill_null(0).to_numpy().astype(np.int64)
    total[is_repeated(key, owner)] = 0
    table = pl.DataFrame(
        {
            "module": names,
            "parent": pick(names, owner),
            "depth": pl.Series(_level(owner), dtype=pl.Int32),
            "dur_ns": trace.events["dur_ns"].to_numpy()[rows],
            "is_recomputed": trace.places.backward[rows] >= 0,
            "host_self_ns": own[:, 0] + own[:, 1],
            "device_self_ns": own[:, 2] + own[:, 3],
            **{name: total[:, i] for i, name in enumerate(FIGURES)},
        }
    )
    return _summed(table, max(trace.activity.span_ns, 1))


def _summed(table: pl.DataFrame, span_ns: int) -> pl.DataFrame:
    host, device = (
        pl.col("forward_ns") + pl.col("backward_ns"),
        pl.col("forward_device_ns") + pl.col("backward_device_ns"),
    )
    return (
        table.group_by("module", maintain_order=True)
        .agg(
            pl.col("parent").drop_nulls().mode().sort().first(),
            pl.col("depth").min(),
            pl.len().alias("calls"),
            num_recomputed=pl.col("is_recomputed").sum(),
            mean_ns=pl.col("dur_ns").mean(),
            host_self_ns=pl.col("host_self_ns").sum(),
            host_total_ns=host.sum(),
            device_self_ns=pl.col("device_self_ns").sum(),
            device_total_ns=device.sum(),
            **{name: pl.col(name).sum() for name in FIGURES},
        )
        .with_columns(
            host_share=pl.col("host_total_ns") / span_ns,
            device_share=pl.col("device_total_ns") / span_ns,
        )
    )


def _own(trace: RankTrace, call: IntArray, num_calls: int) -> IntArray:
    """What is each call's own, in the columns of `FIGURES`."""
    backward = trace.places.backward >= 0
    host, device, kernel = (trace.are(*kinds) for kinds in (HOST, DEVICE_WORK, [Kind.KERNEL]))
    own_ns, dur = trace.events["self_ns"].to_numpy(), trace.events["dur_ns"].to_numpy()
    found = np.zeros((num_calls, len(FIGURES)), np.int64)
    for column, (chosen, values) in enumerate(
        (
            (host & ~backward, own_ns),
            (host & backward, own_ns),
            (device & ~backward, dur),
            (device & backward, dur),
            (kernel, np.ones(len(dur), np.int64)),
        )
    ):
        gather_into(found[:, column], call[chosen], values[chosen])
    return found


def _level(owner: IntArray) -> IntArray:
    """Number of modules around each call."""
    level = np.zeros(len(owner), np.int64)
    at = owner
    while (at >= 0).any():
        level += at >= 0
        at = np.where(at >= 0, owner[at], -1)
    return level
