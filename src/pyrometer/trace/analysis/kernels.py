"""Kernels by name: time, occupancy, waves, use of matrix units, and which operator and line launched them.

Shares of kernel time are of the sum over all kernels, which exceeds busy time where streams overlap.

Waves. A multiprocessor holds as many blocks at a time as its threads, registers and shared memory allow (`resident`);
`blocks / (multiprocessors · resident)` is how many times the device is filled. The last wave is seldom full: of the
slots of all waves the share `tail_share` stays empty, and a launch below one wave leaves that much of the device unused.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.generated_kernels import parse_generated
from pyrometer.trace.naming.kernel_names import read_name
from pyrometer.trace.occupancy import with_occupancy
from pyrometer.trace.program.where import PLACE, place_of, places_of
from pyrometer.trace.records.device import CategoryTotal, GraphTotal, KernelSummary, KernelTotal
from pyrometer.trace.trace import RankTrace, kept

UNNAMED = "(unnamed)"


@analysis("kernels")
def kernels(trace: RankTrace) -> pl.DataFrame:
    """One row per kernel name, the longest in total first: the fields of `KernelTotal`, its place spread over columns."""
    rows = kernel_launches(trace)
    total = max(int(rows["dur_ns"].sum()), 1)
    span = trace.activity.span_ns
    grouped = (
        rows.group_by("name")
        .agg(
            pl.len().alias("calls"),
            pl.col("dur_ns").sum().alias("total_ns"),
            pl.col("dur_ns").mean().alias("mean_ns"),
            pl.col("dur_ns").min().alias("min_ns"),
            pl.col("dur_ns").max().alias("max_ns"),
            *(_weighted(column) for column in ("occupancy", "waves", "tail_share")),
            pl.col("short_name", "category", "tensor_cores").first(),
            pl.col("event").sort_by("dur_ns").last().alias("longest"),
        )
        .sort("total_ns", "name", descending=[True, False])
    )
    generated = [parse_generated(name) for name in grouped["name"].to_list()]
    return (
        grouped.hstack(places_of(trace, grouped["longest"]))
        .with_columns(
            share=pl.col("total_ns") / total,
            share_of_span=pl.lit(None, pl.Float64) if not span else pl.col("total_ns") / span,
            source_ops=pl.Series(
                [list(g.source_ops) if g else [] for g in generated], dtype=pl.List(pl.String)
            ),
            kernel_file=_files(trace, grouped["longest"]),
        )
        .drop("longest")
        .select(COLUMNS)
    )


@analysis("kernel_summary")
def kernel_summary(trace: RankTrace) -> KernelSummary:
    """Totals over all kernels, by category and by graph, and the twenty longest."""
    rows, table = kernel_launches(trace), kernels(trace)
    total, span = int(rows["dur_ns"].sum()), trace.activity.span_ns
    categories = (
        table.group_by("category")
        .agg(pl.len().alias("num_kernels"), pl.col("calls", "total_ns").sum())
        .sort("total_ns", "category", descending=[True, False])
        .with_columns(share=pl.col("total_ns") / max(total, 1))
    )
    overall = rows.select(_weighted("occupancy"), _weighted("tail_share")).row(0)
    of = dict(categories.select("category", "total_ns").iter_rows())
    median = rows["dur_ns"].quantile(0.5, "nearest")
    return KernelSummary(
        calls=rows.height,
        num_kernels=table.height,
        total_ns=total,
        share_of_span=total / span if span and rows.height else None,
        median_ns=None if median is None else int(median),
        occupancy=overall[0],
        tail_share=overall[1],
        tensor_core_ns=int(table.filter("tensor_cores")["total_ns"].sum()),
        unknown_core_ns=int(table.filter(pl.col("tensor_cores").is_null())["total_ns"].sum()),
        unclassified_ns=int(of.get("other", 0)),
        categories=[CategoryTotal(**row) for row in categories.iter_rows(named=True)],
        graphs=_graphs(rows, total),
        top=top_kernels(trace),
    )


def top_kernels(trace: RankTrace, limit: int = 20) -> list[KernelTotal]:
    """The kernels that take longest in total."""
    return [
        KernelTotal(**{key: value for key, value in row.items() if key not in PLACE}, where=place_of(row))
        for row in kernels(trace).head(limit).iter_rows(named=True)
    ]


@kept
def kernel_launches(trace: RankTrace) -> pl.DataFrame:
    """One row per kernel that ran: `event, name, dur_ns, parent, graph, occupancy, waves, tail_share, category, …`."""
    wanted = ["event", "name", "start_ns", "end_ns", "dur_ns", "track", "device", "parent", "op", "step"]
    rows = trace.of_kind(Kind.KERNEL).select(wanted).with_columns(pl.col("name").fill_null(UNNAMED))
    rows = rows.join(trace.tables["kernels"], on="event", how="left", maintain_order="left")
    names = rows["name"].unique()
    read = [read_name(name) for name in names.to_list()]
    meaning = pl.DataFrame(
        {
            "name": names,
            "short_name": pl.Series([name.short for name in read], dtype=pl.String),
            "category": pl.Series([name.category for name in read], dtype=pl.String),
            "tensor_cores": pl.Series([name.tensor_cores for name in read], dtype=pl.Boolean),
        }
    )
    rows = rows.join(meaning, on="name", how="left", maintain_order="left")
    return with_occupancy(trace, rows)


def _weighted(column: str) -> pl.Expr:
    """Mean weighted with duration, over the rows that have a value."""
    weight = pl.col("dur_ns").filter(pl.col(column).is_not_null())
    mean = (pl.col(column).drop_nulls() * weight).sum() / weight.sum()
    return pl.when(weight.sum() > 0).then(mean).alias(column)


def _graphs(rows: pl.DataFrame, total_ns: int) -> list[GraphTotal]:
    """Kernels of captured graphs: those with a graph id, and those of calls that launched several kernels."""
    known = rows.filter(pl.col("parent").is_not_null()).select(
        "parent", "name", "dur_ns", "graph", "start_ns"
    )
    calls = (
        known.sort("start_ns")
        .group_by("parent", maintain_order=True)
        .agg("name", pl.col("graph").max(), pl.len().alias("calls"), pl.col("dur_ns").sum().alias("total_ns"))
        .filter((pl.col("graph") > 0).fill_null(value=False) | (pl.col("calls") > 1))
    )
    alike = calls.select("name").unique(maintain_order=True).with_row_index("sequence")
    table = (
        calls.join(alike, on="name", how="left", maintain_order="left")
        .with_columns(
            graph=pl.when(pl.col("graph") > 0).then("graph").otherwise(-1 - pl.col("sequence").cast(pl.Int64))
        )
        .group_by("graph")
        .agg(pl.len().alias("launches"), pl.col("calls", "total_ns").sum())
        .sort("total_ns", "graph", descending=[True, False])
    )
    return [
        GraphTotal(**row, share=row["total_ns"] / max(total_ns, 1)) for row in table.iter_rows(named=True)
    ]


def _files(trace: RankTrace, events: pl.Series) -> pl.Series:
    """The generated source behind a kernel, which the launching operator names."""
    op = trace.events["op"].gather(events)
    files = trace.tables["ops"].select(pl.col("event").cast(pl.Int32).alias("op"), "kernel_file")
    return op.to_frame().join(files, on="op", how="left", maintain_order="left")["kernel_file"]


COLUMNS = (
    "name", "short_name", "category", "calls", "total_ns", "mean_ns", "min_ns", "max_ns", "share", "share_of_span", "occupancy",
    "waves", "tail_share", "tensor_cores", "source_ops", "kernel_file", "op", "module", "file", "line", "function", "phase",
)  # fmt: skip
"""Columns of the frame."""
