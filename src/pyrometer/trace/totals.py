"""Rows of the long tables of a trace, as records: what a report lists of them."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
import polars as pl

from pyrometer.record import Record, doc

R = TypeVar("R", bound=Record)


class OpTotal(Record, frozen=True, kw_only=True):
    """All calls of one operator."""

    name: str
    calls: int
    host_self_ns: Annotated[int, doc("time in which no nested operator runs")]
    host_total_ns: int
    device_self_ns: Annotated[int, doc("device work that it launched itself")]
    device_total_ns: int
    num_kernels: int
    host_share: Annotated[float, doc("host self time over the span")]
    device_share: Annotated[float, doc("device self time over the span")]


class LineTotal(Record, frozen=True, kw_only=True):
    """All work that one line of the user's program causes."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    calls: Annotated[int, doc("operators")]
    host_self_ns: int
    device_self_ns: int
    forward_ns: Annotated[int, doc("host self time in the forward pass, and outside of any")]
    backward_ns: Annotated[int, doc("host self time of the backward operators that it recorded")]
    num_kernels: int
    host_share: float
    device_share: float


class ModuleTotal(Record, frozen=True, kw_only=True):
    """All operators of one module, without its submodules."""

    module: str | None = None
    calls: Annotated[int, doc("operators")]
    host_self_ns: int
    device_self_ns: int
    forward_ns: int
    backward_ns: int
    num_kernels: int
    host_share: float
    device_share: float


class RoofPoint(Record, frozen=True, kw_only=True):
    """One operator with its shapes, against what the machine allows."""

    op: str | None = None
    shapes: str | None = None
    dtypes: str | None = None
    calls: int
    time_ns: int
    share: Annotated[float, doc("of all device time, or of all operators' own time without a device")]
    flop: int | None = None
    num_bytes: int | None = None
    flop_per_s: float | None = None
    bytes_per_s: float | None = None
    intensity: Annotated[float | None, doc("FLOP per byte")] = None
    share_of_roof: float | None = None
    bound: Annotated[str | None, doc("compute, memory, overhead, communication, transfer or unknown")] = None
    source: Annotated[str | None, doc("of the formula")] = None


def rows(frame: pl.DataFrame, kind: type[R], most: int) -> list[R]:
    """The first rows of a frame as records, which take the columns that they name.

    >>> class Point(Record, frozen=True, kw_only=True):
    ...     x: int
    >>> rows(pl.DataFrame({"x": [1, 2], "y": [3, 4]}), Point, most=1)
    [Point(x=1)]
    """
    named = [name for name in kind.__struct_fields__ if name in frame.columns]
    return msgspec.convert(frame.head(most).select(named).to_dicts(), list[kind])  # type: ignore[valid-type]
