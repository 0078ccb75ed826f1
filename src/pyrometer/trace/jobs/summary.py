"""What is left of a rank's trace when it has been reduced: small, serialisable, and enough to compare ranks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import polars as pl

from pyrometer.record import Record, doc

NULL = -(2**63)
"""Stands for a missing integer in a packed column."""


class StepSummary(Record, frozen=True, kw_only=True):
    """One step of one rank; times on the file's clock."""

    name: str
    start_ns: int
    end_ns: int
    compute_ns: Annotated[int, doc("computing that the step launched")]
    first_compute_ns: Annotated[int | None, doc("when its first computing starts; null without any")] = None
    last_compute_ns: Annotated[int | None, doc("when its last computing ends")] = None


class CallLabel(Record, frozen=True, kw_only=True):
    """What many calls of a rank have in common."""

    name: str
    group: str | None = None
    group_ranks: str | None = None
    group_size: int | None = None
    dtype: str | None = None


class WorkLabel(Record, frozen=True, kw_only=True):
    """One kind of work between collectives."""

    name: Annotated[str, doc("operator, annotation or kernel; BETWEEN is time outside of all of them")]
    side: Annotated[str, doc("device or host")]
    phase: Annotated[str | None, doc("forward, backward, …, where it is marked")] = None
    file: Annotated[
        str | None, doc("of the user's function that it belongs to, with `line` and `function`")
    ] = None
    line: int | None = None
    function: str | None = None


class Packed(Record, frozen=True, kw_only=True):
    """Columns of integers, so that a record of many rows stays small: little-endian int64, compressed by zlib."""

    num_rows: int = 0
    columns: dict[str, bytes] = {}

    def frame(self) -> pl.DataFrame:
        """The columns, missing values as null."""
        unpacked = {
            name: pl.Series(np.frombuffer(zlib.decompress(raw), "<i8").astype(np.int64))
            for name, raw in self.columns.items()
        }
        return pl.DataFrame({name: values.set(values == NULL, None) for name, values in unpacked.items()})


def pack(frame: pl.DataFrame) -> Packed:
    """Pack integer columns.

    >>> pack(pl.DataFrame({"a": [1, None]})).frame()["a"].to_list()
    [1, None]
    """
    values = {name: frame[name].cast(pl.Int64).fill_null(NULL).to_numpy() for name in frame.columns}
    return Packed(
        num_rows=frame.height,
        columns={name: zlib.compress(column.astype("<i8").tobytes(), 1) for name, column in values.items()},
    )


class RankSummary(Record, frozen=True, kw_only=True):
    """One rank, reduced. Its size depends on the number of steps and collectives, and on nothing else.

    All times are on the file's clock; `base_ns` added to them gives the host's unix time.
    """

    rank: int
    rank_from: str = "order"
    path: str = ""
    host: str | None = None
    base_ns: int = 0
    world_size: int | None = None
    start_ns: int = 0
    end_ns: int = 0
    parts: Annotated[
        dict[str, int], doc("breakdown of the span by class of activity, ns; sums to the span")
    ] = {}
    on_device: Annotated[bool, doc("whether the trace holds device work")] = False
    compute_ns: Annotated[
        int, doc("time in which the device computes; without one, in which an operator runs")
    ] = 0
    communication_ns: int = 0
    exposed_communication_ns: int = 0
    steps: list[StepSummary] = []
    labels: list[CallLabel] = []
    calls: Annotated[
        Packed,
        doc(
            "collectives: label, sequence, peer, bytes, start_ns, dur_ns, exposed_ns, launch_ns, step (row of steps)"
        ),
    ] = Packed()
    num_calls_left_out: Annotated[int, doc("collectives beyond the limit, the last ones")] = 0
    work_labels: list[WorkLabel] = []
    work: Annotated[
        Packed, doc("largest work before each collective: call (row of calls), label (of work_labels), ns")
    ] = Packed()
    shards_parameters: Annotated[bool, doc("whether annotations of FSDP or ZeRO occur")] = False
    num_lost_events: Annotated[int, doc("events that could not be read")] = 0
    is_truncated: Annotated[bool, doc("whether the file ends before its events do")] = False

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        return self.end_ns - self.start_ns


def first_calls(summary: RankSummary, most: int) -> RankSummary:
    """The same with no more than so many collectives, the first ones; the others are counted."""
    excess = summary.calls.num_rows - most
    if excess <= 0:
        return summary
    return msgspec.structs.replace(
        summary,
        calls=pack(summary.calls.frame().head(most)),
        work=pack(summary.work.frame().filter(pl.col("call") < most))
        if summary.work.num_rows
        else summary.work,
        num_calls_left_out=summary.num_calls_left_out + excess,
    )


SummariesOf: TypeAlias = Callable[[Iterable[int]], Iterable[RankSummary]]
"""Gives the summaries of these ranks, in order, as far as there are any."""
