"""`tables_of`: the long tables of one rank, complete, as a page lists them.

What overlaps between rows (totals, which hold what is nested) is never summed: in the row of the others it is null.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TypeVar

import polars as pl

from pyrometer.place import Place
from pyrometer.trace.analysis.copies import copies
from pyrometer.trace.analysis.idle import idle
from pyrometer.trace.analysis.kernels import kernels
from pyrometer.trace.analysis.modules import modules
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.analysis.roofline import AnyPeaks, roofline
from pyrometer.trace.analysis.user_lines import user_lines
from pyrometer.trace.records.device import Copies
from pyrometer.trace.records.waiting import Idle
from pyrometer.trace.trace import RankTrace
from pyrometer.trace.view.names import short
from pyrometer.trace.view.table_record import (
    MAX_GAPS,
    MAX_ROWS,
    OTHER,
    CopyColumns,
    GapColumns,
    KernelColumns,
    LineColumns,
    ModuleColumns,
    OperatorColumns,
    ShapeColumns,
    TraceTables,
    _Columns,
)

C = TypeVar("C", bound=_Columns)

SIGNIFICANT = 5
"""Digits of shares and rates; a page shows three."""


def tables_of(trace: RankTrace, *, peaks: AnyPeaks | None = None, max_rows: int = MAX_ROWS) -> TraceTables:
    """The tables of one rank: operators, operators by shape, kernels, source lines, modules and copies.

    Args:
        trace: one rank.
        peaks: of its machine; without them the vendor's figures are used for a device that is known.
        max_rows: of each table; the rows beyond are summed in a last one, `(other)`.
    """
    rates = roofline(trace, peaks=peaks) if peaks else roofline(trace)
    return TraceTables(
        rank=trace.rank,
        path=trace.info.path,
        span_ns=trace.activity.span_ns,
        has_device=trace.activity.has_device,
        operators=_columns(_operators(trace, rates), OperatorColumns, "name", max_rows),
        shapes=_columns(_shapes(rates), ShapeColumns, "name", max_rows),
        kernels=_columns(_kernels(trace), KernelColumns, "name", max_rows),
        lines=_columns(_lines(trace), LineColumns, "where", max_rows),
        modules=_columns(modules(trace), ModuleColumns, "module", max_rows),
        copies=_columns(_copies(copies(trace, top=max_rows + 1)), CopyColumns, "kind", max_rows),
        gaps=gap_columns(idle(trace, top=MAX_GAPS), trace.activity.start_ns),
    )


def gap_columns(found: Idle, origin_ns: int) -> GapColumns:
    """The listed gaps of an idle report, column by column."""
    gaps = found.gaps
    return GapColumns(
        num_rows=found.num_gaps,
        num_listed=len(gaps),
        start_ns=[gap.start_ns - origin_ns for gap in gaps],
        dur_ns=[gap.dur_ns for gap in gaps],
        share=[float(f"{gap.share:.{SIGNIFICANT}g}") for gap in gaps],
        cause=[gap.cause for gap in gaps],
        doing=[gap.host.kind for gap in gaps],
        name=[_short(gap.host.name) for gap in gaps],
        where=[place_text(gap.where) for gap in gaps],
        step=[gap.step for gap in gaps],
        device=[gap.device for gap in gaps],
        previous=[_short(gap.previous) for gap in gaps],
        next=[_short(gap.next) for gap in gaps],
    )


def place_text(place: Place) -> str | None:
    """A place as one text, as `where` writes it.

    >>> place_text(Place(file="a/b.py", line=3, function="f")), place_text(Place())
    ('a/b.py:3 f', None)
    """
    if place.file is not None:
        line = "" if place.line is None else f":{place.line}"
        return f"{place.file}{line} {place.function or ''}".rstrip()
    module = f"module {place.module}" if (place.module or "").isdigit() else place.module
    return module or place.phase


def _short(name: str | None) -> str | None:
    return None if name is None else short(name)


def _operators(trace: RankTrace, rates: pl.DataFrame) -> pl.DataFrame:
    return operators(trace).join(_rates_by_op(rates), on="name", how="left", maintain_order="left")


def _rates_by_op(rates: pl.DataFrame) -> pl.DataFrame:
    """FLOP/s and bytes/s of each operator, over the time of those of its calls that a formula covers."""

    def rate(amount: str) -> pl.Expr:
        covered = pl.col(amount).is_not_null()
        time = pl.col("time_ns").filter(covered).sum()
        total = pl.col(amount).filter(covered).sum()
        return pl.when((time > 0) & (total > 0)).then(total * 1e9 / time)

    return (
        rates.filter(pl.col("op").is_not_null())
        .group_by(name="op")
        .agg(flop_per_s=rate("flop"), bytes_per_s=rate("num_bytes"))
    )


def _shapes(rates: pl.DataFrame) -> pl.DataFrame:
    said = pl.when(pl.col("bound") != "unknown").then("bound")
    return rates.with_columns(
        where(), name="op", mean_ns=pl.col("time_ns") / pl.col("calls"), bound=said
    ).filter(pl.col("time_ns") > 0)


def _kernels(trace: RankTrace) -> pl.DataFrame:
    matrix_units = pl.when("tensor_cores").then(pl.lit("yes"))
    return kernels(trace).with_columns(where(), tensor_cores=matrix_units)


def _lines(trace: RankTrace) -> pl.DataFrame:
    names = pl.col("top_ops").list.head(3).list.eval(pl.element().struct.field("name")).list.join(", ")
    return user_lines(trace).with_columns(where=_LINE, top_ops=names)


def _copies(found: Copies) -> pl.DataFrame:
    rows = [
        {
            "kind": f"{place.kind} {place.memory or ''}".strip(),
            "num_copies": place.num_copies,
            "total_bytes": place.total_bytes,
            "total_ns": place.total_ns,
            "share": place.total_ns / max(found.total_ns, 1),
            "bytes_per_s": place.total_bytes * 1e9 / place.total_ns if place.total_ns else None,
            "op": place.where.op,
            "where": place_text(place.where),
        }
        for place in found.places
    ]
    text, whole, real = pl.String, pl.Int64, pl.Float64
    schema = {
        "kind": text,
        "num_copies": whole,
        "total_bytes": whole,
        "total_ns": whole,
        "share": real,
        "bytes_per_s": real,
        "op": text,
        "where": text,
    }
    return pl.DataFrame(rows, schema=schema)


_LINE = pl.concat_str(
    "file",
    pl.concat_str(pl.lit(":"), pl.col("line").cast(pl.String)).fill_null(""),
    pl.concat_str(pl.lit(" "), "function").fill_null(""),
)


def where() -> pl.Expr:
    """A place as one text: `file:line function` where the line is known, else the module, else the phase.

    >>> place = {"file": ["a/b.py", None], "line": [3, None], "function": ["f", None]}
    >>> pl.DataFrame({**place, "module": [None, "0"], "phase": ["forward", None]}).select(where())["where"].to_list()
    ['a/b.py:3 f', 'module 0']
    """
    bare = pl.col("module").str.contains(r"^\d+$")
    module = pl.when(bare).then(pl.concat_str(pl.lit("module "), "module")).otherwise("module")
    return pl.coalesce(_LINE, module, "phase").alias("where")


_SUMMED: MappingProxyType[type[_Columns], frozenset[str]] = MappingProxyType(
    {
        OperatorColumns: frozenset(("calls", "host_self_ns", "device_self_ns", "host_share", "device_share")),
        ShapeColumns: frozenset(("calls", "time_ns", "share")),
        KernelColumns: frozenset(("calls", "total_ns", "share")),
        LineColumns: frozenset(
            ("self_ns", "device_ns", "num_ops", "num_kernels", "host_share", "device_share")
        ),
        ModuleColumns: frozenset(("calls", "host_self_ns", "device_self_ns")),
        CopyColumns: frozenset(("num_copies", "total_bytes", "total_ns", "share")),
    }
)
"""Columns whose rows hold nothing of each other's, so that they may be summed."""


def _columns(frame: pl.DataFrame, kind: type[C], key: str, max_rows: int) -> C:
    """The columns of a frame that a record names; what is beyond its last row is summed in one."""
    head, rest = frame.head(max_rows), frame.slice(max_rows)
    named = [name for name in kind.__struct_fields__ if name in frame.columns]
    types = {name: _plain(frame.schema[name]) for name in named}
    listed = head.select(named).cast(types)  # type: ignore[arg-type]
    if rest.height:
        listed = pl.concat([listed, _others(rest, kind, key, types)])
    if key in listed.columns:  # files of other programs hold events without a name
        listed = listed.with_columns(pl.col(key).fill_null("(no name)"))
    means = pl.selectors.by_name("mean_ns", require_all=False)
    listed = listed.with_columns(means.fill_nan(None).round().cast(pl.Int64)).with_columns(
        pl.selectors.float().fill_nan(None).round_sig_figs(SIGNIFICANT),
        pl.selectors.string().map_elements(short, return_dtype=pl.String),
    )
    return kind(num_rows=frame.height, num_listed=listed.height, **listed.to_dict(as_series=False))


def _others(
    rest: pl.DataFrame, kind: type[_Columns], key: str, types: dict[str, type[pl.DataType]]
) -> pl.DataFrame:
    """One row with the sums of what may be summed."""
    row = {name: rest[name].sum() if name in _SUMMED[kind] else None for name in types} | {key: OTHER}
    row |= {name: "" for name in ("short_name", "category", "top_ops") if name in types}
    return pl.DataFrame([row], schema=types)


def _plain(dtype: pl.DataType) -> type[pl.DataType]:
    """Whole numbers may be of any width in a trace; a sum must fit."""
    return pl.Int64 if dtype.is_integer() else pl.Float64 if dtype.is_float() else pl.String
