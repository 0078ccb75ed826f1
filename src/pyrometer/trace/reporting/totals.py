"""Rows of the long tables of a trace, as records: what a report lists of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pyrometer.place import Place
from pyrometer.record import Record, doc


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


class LineOp(Record, frozen=True, kw_only=True):
    """An operator that a line spends its time on."""

    name: str
    host_ns: int
    device_ns: int


class LineTotal(Record, frozen=True, kw_only=True):
    """All time that belongs to one function of the user's program; the line is where it begins."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    calls: int | None = None
    self_ns: Annotated[int, doc("host time that no other function of the user took below it")]
    total_ns: int | None = None
    forward_ns: int
    backward_ns: Annotated[int, doc("of self_ns: backward operators of what it ran forward")]
    device_ns: int
    num_ops: int
    num_kernels: int
    host_share: Annotated[float, doc("self time over the span")]
    device_share: float
    top_ops: Annotated[list[LineOp], doc("that take the most of it")] = []


class ModuleTotal(Record, frozen=True, kw_only=True):
    """All calls of one module; `forward_ns` and `backward_ns` are host time with its submodules."""

    module: str | None = None
    parent: str | None = None
    depth: int = 0
    calls: int
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    forward_ns: int
    backward_ns: int
    forward_device_ns: int = 0
    backward_device_ns: int = 0
    num_kernels: int
    host_share: Annotated[float, doc("host total over the span")]
    device_share: Annotated[float, doc("device total over the span")]


class TreeNode(Record, frozen=True, kw_only=True):
    """A node of the merged call tree."""

    node: int
    parent: int | None = None
    name: str
    kind: str
    calls: int
    total_ns: int
    self_ns: int
    device_ns: int
    depth: int


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
    arithmetic: Annotated[
        str | None, doc("type that it is calculated in; tf32 where matrix units take float32")
    ] = None
    unit: Annotated[
        str | None, doc("matrix, or vector: outside of matrix units, under float32's ceiling")
    ] = None
    bound: Annotated[str | None, doc("compute, memory, overhead, communication, transfer or unknown")] = None
    source: Annotated[str | None, doc("of the formula")] = None
    file: Annotated[str | None, doc("of the function that makes the longest of the calls")] = None
    line: Annotated[int | None, doc("where that function begins")] = None
    function: str | None = None
    module: str | None = None


def arithmetic_of(points: Iterable[RoofPoint]) -> set[str]:
    """The ceilings of arithmetic that operators stand under, by name."""
    return {
        (point.arithmetic or "") if point.unit == "matrix" else "float32" for point in points if point.flop
    }


class MatrixProduct(Record, frozen=True, kw_only=True):
    """A matrix product, convolution or attention of one shape: whether it runs on matrix units, and what is in the way."""

    op: str
    shapes: str | None = None
    arithmetic: Annotated[str, doc("the type that it is calculated in; tf32 where matrix units take float32")]
    calls: int
    time_ns: int
    tensor_core_ns: Annotated[int, doc("of that, in kernels that use matrix units")]
    unknown_core_ns: Annotated[int, doc("of that, in kernels whose names do not say")] = 0
    eligible: Annotated[bool, doc("the device's matrix units take this type")]
    reason: Annotated[str | None, doc("why they are not used, or not at full speed")] = None
    odd_size: Annotated[int | None, doc("size that lies innermost in memory and is no multiple")] = None
    multiple: Annotated[int | None, doc("elements in the 16 bytes of which sizes should be multiples")] = None


class Sequence(Record, frozen=True, kw_only=True):
    """A sequence that occurs again and again."""

    parts: Annotated[list[str], doc("short kernel names; operators in a trace without device work")]
    ops: Annotated[list[str | None], doc("operators that launched them, in the first occurrence")]
    kind: Annotated[
        str,
        doc(
            "chain: all parts are memory-bound; epilogue: the first is a matrix product; repeated: all parts alike"
        ),
    ]
    count: Annotated[int, doc("occurrences, none overlapping another or a listed sequence above")]
    total_ns: Annotated[int, doc("time of all parts of all occurrences, pauses left out")]
    part_ns: Annotated[list[int], doc("total_ns by part, in their order")] = []
    share: Annotated[float, doc("of all work")]
    pause_ns: Annotated[int, doc("pauses that fusing would remove, each at most 10 µs")]
    intermediate_bytes: Annotated[
        int | None, doc("handed from part to part, in all occurrences; absent where shapes are not known")
    ] = None
    gain_low_ns: Annotated[int, doc("predicted gain over the whole trace, lower bound")]
    gain_high_ns: Annotated[int, doc("upper bound")]
    num_removed: Annotated[int, doc("launches (operators) fewer, over the whole trace")]
    where: Place
