"""`TraceTables`: the long tables of one rank, column by column; a list that is empty although there are rows says nothing."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc

MAX_GAPS = 1_000
"""Gaps that are listed; all are in the sums by cause."""

MAX_ROWS = 5_000
"""Rows that a table holds; those beyond are summed in one that is named `OTHER`."""

OTHER = "(other)"


class _Columns(Record, frozen=True, kw_only=True):
    num_rows: Annotated[
        int, doc("in the trace; more than are listed where the last row sums those beyond")
    ] = 0
    num_listed: Annotated[int, doc("rows of the columns, the one that sums the others among them")] = 0


class OperatorColumns(_Columns, frozen=True, kw_only=True):
    """Operators by name, the most device time first, then host time."""

    name: list[str] = []
    calls: list[int] = []
    host_self_ns: Annotated[list[int], doc("time in which no nested operator runs")] = []
    host_total_ns: Annotated[list[int | None], doc("null in the row of the others: totals overlap")] = []
    device_self_ns: Annotated[list[int], doc("device work that they launched themselves")] = []
    device_total_ns: list[int | None] = []
    num_kernels: Annotated[list[int | None], doc("launched at or below them")] = []
    mean_ns: Annotated[list[int | None], doc("host duration of a call")] = []
    max_ns: list[int | None] = []
    forward_ns: Annotated[list[int | None], doc("of host_self_ns")] = []
    backward_ns: list[int | None] = []
    host_share: Annotated[list[float], doc("host self time over the span")] = []
    device_share: Annotated[list[float], doc("device self time over the span")] = []
    flop_per_s: Annotated[
        list[float | None], doc("over the time of the calls whose FLOP a formula gives")
    ] = []
    bytes_per_s: Annotated[
        list[float | None], doc("least traffic over the time of the calls whose bytes a formula gives")
    ] = []


class ShapeColumns(_Columns, frozen=True, kw_only=True):
    """Operators by the shapes and types of their inputs, the most time first."""

    name: list[str] = []
    shapes: list[str | None] = []
    dtypes: list[str | None] = []
    calls: list[int] = []
    time_ns: Annotated[
        list[int], doc("of their device work; in a trace without devices their own time on the host")
    ] = []
    share: Annotated[list[float], doc("of the sum over all rows")] = []
    mean_ns: list[int | None] = []
    flop: Annotated[list[int | None], doc("of all calls, by formula")] = []
    num_bytes: Annotated[list[int | None], doc("least traffic of all calls, by formula")] = []
    flop_per_s: list[float | None] = []
    bytes_per_s: list[float | None] = []
    intensity: Annotated[list[float | None], doc("FLOP per byte")] = []
    share_of_roof: Annotated[list[float | None], doc("of what the device allows at this intensity")] = []
    bound: Annotated[list[str | None], doc("compute, memory, overhead, communication or transfer")] = []
    where: Annotated[list[str | None], doc("source line, module or phase of the longest call")] = []


class KernelColumns(_Columns, frozen=True, kw_only=True):
    """Kernels by name, the longest in total first."""

    name: list[str] = []
    short_name: Annotated[list[str], doc("without namespaces and parameters")] = []
    category: list[str] = []
    calls: list[int] = []
    total_ns: list[int] = []
    share: Annotated[list[float], doc("of the sum over all kernels")] = []
    mean_ns: list[int | None] = []
    min_ns: list[int | None] = []
    max_ns: list[int | None] = []
    occupancy: Annotated[list[float | None], doc("estimated, weighted with duration")] = []
    tail_share: Annotated[list[float | None], doc("block slots of all waves that stay empty")] = []
    tensor_cores: Annotated[list[str | None], doc("'yes' where its name says that it uses matrix units")] = []
    op: Annotated[list[str | None], doc("operator that launched the longest")] = []
    where: Annotated[list[str | None], doc("source line, module or phase of the longest launch")] = []


class LineColumns(_Columns, frozen=True, kw_only=True):
    """Functions of the user's program, the most device time first, then host time."""

    where: Annotated[list[str], doc("file, line at which the function begins, and its name")] = []
    calls: list[int | None] = []
    self_ns: Annotated[list[int], doc("host time that no other function of the user took below it")] = []
    total_ns: list[int | None] = []
    forward_ns: Annotated[list[int | None], doc("of self_ns")] = []
    backward_ns: list[int | None] = []
    device_ns: list[int] = []
    num_ops: list[int] = []
    num_kernels: list[int] = []
    host_share: Annotated[list[float], doc("self time over the span")] = []
    device_share: list[float] = []
    top_ops: Annotated[list[str], doc("the operators that take the most of it, at most three")] = []


class ModuleColumns(_Columns, frozen=True, kw_only=True):
    """Modules in the order of their first calls."""

    module: list[str] = []
    parent: Annotated[list[str | None], doc("the module that calls it most often")] = []
    depth: list[int | None] = []
    calls: list[int] = []
    host_self_ns: list[int] = []
    host_total_ns: Annotated[list[int | None], doc("with its submodules")] = []
    device_self_ns: list[int] = []
    device_total_ns: list[int | None] = []
    forward_ns: Annotated[list[int | None], doc("of host_total_ns")] = []
    backward_ns: list[int | None] = []
    forward_device_ns: list[int | None] = []
    backward_device_ns: list[int | None] = []
    mean_ns: Annotated[list[int | None], doc("host duration of a call")] = []
    num_kernels: list[int | None] = []
    host_share: Annotated[list[float | None], doc("host total over the span")] = []
    device_share: Annotated[list[float | None], doc("device total over the span")] = []


class CopyColumns(_Columns, frozen=True, kw_only=True):
    """Copies and fills by direction and by the place that launched them, the longest in total first."""

    kind: Annotated[list[str], doc("direction, and whether host memory is pinned")] = []
    num_copies: list[int] = []
    total_bytes: list[int] = []
    total_ns: list[int] = []
    share: Annotated[list[float], doc("of the time of all copies")] = []
    bytes_per_s: list[float | None] = []
    op: list[str | None] = []
    where: list[str | None] = []


class GapColumns(_Columns, frozen=True, kw_only=True):
    """The longest gaps in the work of a device, the longest first; those beyond are not summed in a row."""

    start_ns: Annotated[list[int], doc("since the start of the span")] = []
    dur_ns: list[int] = []
    share: Annotated[list[float], doc("of all attributed idle time")] = []
    cause: Annotated[
        list[str],
        doc(
            "sync_drain, launch_starvation, between_collectives, turnaround, dependency, unknown; no_operator"
        ),
    ] = []
    doing: Annotated[
        list[str], doc("what the host did most of the time: data_loading, sync, runtime, …")
    ] = []
    name: Annotated[list[str | None], doc("operator, function, call or annotation that it did")] = []
    where: Annotated[
        list[str | None], doc("place of what the host did, else of the launch that ended it")
    ] = []
    step: Annotated[list[int | None], doc("row of the steps in which it begins")] = []
    device: list[int | None] = []
    previous: Annotated[list[str | None], doc("device work before it")] = []
    next: Annotated[list[str | None], doc("device work after it")] = []


class TraceTables(Record, frozen=True, kw_only=True):
    """One rank's tables."""

    rank: int
    path: str
    span_ns: int
    has_device: bool
    operators: OperatorColumns = OperatorColumns()
    shapes: ShapeColumns = ShapeColumns()
    kernels: KernelColumns = KernelColumns()
    lines: LineColumns = LineColumns()
    modules: ModuleColumns = ModuleColumns()
    copies: CopyColumns = CopyColumns()
    gaps: GapColumns = GapColumns()
