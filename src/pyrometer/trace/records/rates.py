"""How near one rank comes to what its machine can do."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class Ceiling(Record, frozen=True, kw_only=True):
    """A rate that the device does not exceed; shares of the roof are of `rate`."""

    name: Annotated[str, doc("memory, cache, or the type of the arithmetic: float32, tf32, bfloat16, …")]
    rate: Annotated[float, doc("bytes/s of memory and cache, FLOP/s of arithmetic")]
    low: Annotated[
        float | None,
        doc(
            "rate that half of the timings reached: the ceiling is sharp where it is near; null if not measured"
        ),
    ] = None
    source: Annotated[str, doc("measured, and on what; or the data sheet")]
    is_measured: bool
    work: Annotated[str, doc("what was timed, and how often; empty for a data sheet's figure")] = ""


class Uncovered(Record, frozen=True, kw_only=True):
    """Time that no formula covers."""

    op: str
    time_ns: int
    share: Annotated[float, doc("of all time")]
    reason: str


class StepUtilisation(Record, frozen=True, kw_only=True):
    """What a device did in one step."""

    step: Annotated[int, doc("row of the steps")]
    name: str
    wall_ns: int
    flop: Annotated[int, doc("of all operators with a formula that were launched in it")]
    num_bytes: Bytes
    mfu: float | None = None
    bandwidth_utilisation: float | None = None


class Utilisation(Record, frozen=True, kw_only=True):
    """What the device was used for, as a whole."""

    span_ns: int
    time_ns: Annotated[int, doc("device work; in a trace without it operators, each its own time")]
    covered_ns: Annotated[int, doc("of this the time of operators with a formula")]
    overhead_ns: Annotated[
        int, doc("views, allocations and wrappers: host time that no formula could cover")
    ] = 0
    communication_ns: int = 0
    transfer_ns: Annotated[int, doc("copies between host and device")] = 0
    unlinked_ns: Annotated[
        int, doc("device work that names no operator: graphs, or launches missing from the trace")
    ] = 0
    covered_share: Annotated[
        float | None, doc("covered over all but communication, transfers and overhead")
    ] = None
    flop: int
    matrix_flop: Annotated[int, doc("of matrix products, convolutions and attention")]
    num_bytes: Annotated[Bytes, doc("the least that the covered operators must move")]
    flop_per_s: Annotated[float | None, doc("over the span")] = None
    bytes_per_s: Annotated[float | None, doc("over the span")] = None
    mfu: Annotated[
        float | None,
        doc(
            "time that the matrix FLOP would take at their dtypes' peaks, over the span; a lower bound where formulas do not cover all, and recomputed FLOP count"
        ),
    ] = None
    bandwidth_utilisation: Annotated[float | None, doc("bytes at full bandwidth over the span")] = None
    peaks_source: str | None = None
    steps: list[StepUtilisation] = []
    uncovered: Annotated[list[Uncovered], doc("largest first")] = []


class OperatorCounters(Record, frozen=True, kw_only=True):
    """The counters of all kernels of one name that one operator launched."""

    op: Annotated[str | None, doc("innermost operator; null where ranges and launches are not as many")] = (
        None
    )
    kernel: Annotated[str, doc("without namespaces and parameters, or the name of a range that the user set")]
    calls: int
    flop: Annotated[float | None, doc("outside of tensor cores; null without counters of arithmetic")] = None
    counters: Annotated[
        dict[str, float], doc("sums of `….sum`, means of the others, by the name of the metric")
    ] = {}


FLOP_OF = {
    f"smsp__sass_thread_inst_executed_op_{kind}{operation}_pred_on.sum": 2 if operation == "fma" else 1
    for kind in "hfd"
    for operation in ("add", "mul", "fma")
}
"""Counters of arithmetic outside of tensor cores, and how many FLOP one instruction of a thread is."""
