"""The user's own functions by the time that is spent in them and on what they call.

Where a trace was captured with stacks, time belongs to the innermost function of the user's own code around it: operators,
torch's own Python and other libraries below it are its own. Backward work belongs to the function that ran its forward
operator, unless the user's own code runs within the backward operator. A stack that holds only libraries counts for the
innermost of them that is not torch or Python itself. Line numbers are those at which functions begin, which is what the
profiler writes; only functions that ran already when it started show the line that was being run.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.analysis.operators import op_rows
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind
from pyrometer.trace.naming.frames import frame_parts
from pyrometer.trace.program.rollup import above, is_repeated
from pyrometer.trace.program.where import names_of_places
from pyrometer.trace.rows import among, pick, positions
from pyrometer.trace.trace import RankTrace

LINE = ("file", "line", "function")

MOST_OPS = 8
"""Of a function: as many as a mechanism of several operators has, such as attention that is written out."""


@analysis("user_lines")
def user_lines(trace: RankTrace) -> pl.DataFrame:
    """The user's functions: host and device time, own and total, and the operators that they spend it on.

    Returns:
        `file, line, function, calls, self_ns, total_ns, forward_ns, backward_ns, device_ns, num_ops, num_kernels,
        host_share, device_share, top_ops`, the most device time first, then host time. `self_ns` is host time that no other
        function of the user took below it, parted into `forward_ns` and `backward_ns`; over all rows it sums to the host
        time that belongs to any function. `total_ns` is the duration of the calls, recursion counted once; it and `calls`
        are null in old files that hold call stacks of operators only. `device_ns` and `num_kernels` are what was launched
        while the function was the innermost. `top_ops` lists at most eight `{name, host_ns, device_ns}` with the largest
        self times. Shares are over the span. Empty without stacks.
    """
    placed = _placed(trace)
    if not placed.height:
        return _empty()
    span = max(trace.activity.span_ns, 1)
    lines = placed.group_by(LINE, maintain_order=True).agg(
        self_ns=pl.col("host_ns").sum(),
        forward_ns=pl.col("host_ns").filter(~pl.col("is_backward")).sum(),
        backward_ns=pl.col("host_ns").filter("is_backward").sum(),
        device_ns=pl.col("device_ns").sum(),
        num_ops=pl.col("is_op").sum(),
        num_kernels=pl.col("is_kernel").sum(),
    )
    rows = (
        lines.join(_calls(trace), on=LINE, how="left")
        .join(_top_ops(placed), on=LINE, how="left")
        .with_columns(
            host_share=pl.col("self_ns") / span,
            device_share=pl.col("device_ns") / span,
            top_ops=pl.col("top_ops").fill_null([]),
        )
        .sort("device_ns", "self_ns", *LINE, descending=[True, True, False, False, False])
    )
    return rows.select(_empty().columns).cast(_empty().schema)


def _placed(trace: RankTrace) -> pl.DataFrame:
    """Host events and device work that belong to a function: where, how long, and for which operator."""
    events, names, ops = trace.events, names_of_places(trace), op_rows(trace)
    known = names.frames["file"].is_not_null().to_numpy()[names.frame]
    rows = np.flatnonzero(known & trace.are(*HOST, *DEVICE_WORK))
    op = np.append(ops.event, -1)[ops.of_event[rows]]
    return names.frames[names.frame[rows]].with_columns(
        op=pick(events["name"], op),
        host_ns=pl.Series(np.where(trace.are(*HOST)[rows], events["self_ns"].to_numpy()[rows], 0)),
        device_ns=pl.Series(np.where(trace.are(*DEVICE_WORK)[rows], events["dur_ns"].to_numpy()[rows], 0)),
        is_op=pl.Series(among(rows, ops.event)),
        is_kernel=pl.Series(trace.are(Kind.KERNEL)[rows]),
        is_backward=pl.Series(trace.places.backward[rows] >= 0),
    )


def _calls(trace: RankTrace) -> pl.DataFrame:
    """Calls of each function, and their duration without what lies in another call of the same one."""
    functions = trace.are(Kind.PYTHON_FUNCTION)
    rows = np.flatnonzero(functions)
    names = trace.events.select("name", "dur_ns")[rows]
    key = names["name"].rank("dense").fill_null(0).to_numpy().astype(np.int64)
    repeated = is_repeated(key, positions(rows, len(functions))[above(trace, functions)[rows]])
    summed = (
        names.with_columns(total_ns=pl.when(pl.Series(~repeated)).then("dur_ns").otherwise(0))
        .group_by("name", maintain_order=True)
        .agg(calls=pl.len(), total_ns=pl.col("total_ns").sum())
    )
    return frame_parts(summed["name"]).hstack(summed.drop("name")).drop_nulls("file")


def _top_ops(placed: pl.DataFrame) -> pl.DataFrame:
    per_op = (
        placed.drop_nulls("op")
        .group_by(*LINE, "op", maintain_order=True)
        .agg(pl.col("host_ns", "device_ns").sum())
    )
    return (
        per_op.sort("device_ns", "host_ns", "op", descending=[True, True, False])
        .group_by(LINE, maintain_order=True)
        .agg(top_ops=pl.struct(name="op", host_ns="host_ns", device_ns="device_ns").head(MOST_OPS))
    )


def _empty() -> pl.DataFrame:
    ns, share = pl.Int64, pl.Float64
    return pl.DataFrame(
        schema={
            "file": pl.String,
            "line": pl.Int64,
            "function": pl.String,
            "calls": pl.UInt32,
            "self_ns": ns,
            "total_ns": ns,
            "forward_ns": ns,
            "backward_ns": ns,
            "device_ns": ns,
            "num_ops": pl.UInt32,
            "num_kernels": pl.UInt32,
            "host_share": share,
            "device_share": share,
            "top_ops": pl.List(pl.Struct({"name": pl.String, "host_ns": ns, "device_ns": ns})),
        }
    )
