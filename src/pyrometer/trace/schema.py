"""The tables of a trace: names, types and meaning of every column. `SCHEMA_VERSION` is part of the cache's key.

Times are integer nanoseconds on the clock of the file (`ts` in µs times 1000); `RankInfo.base_ns` added to them gives
unix time, where the file says it. A value that the file does not hold is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from pyrometer.trace.kinds import Kind

SCHEMA_VERSION = 2

KIND = pl.Enum([kind.value for kind in Kind])


class Column(NamedTuple):
    """Type and meaning of a column."""

    dtype: pl.DataType | type[pl.DataType]
    meaning: str


Table = Mapping[str, Column]

EVENTS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row number: the key that every other table refers to"),
        "rank": Column(pl.Int32, "rank of the process that was traced"),
        "kind": Column(KIND, "what the event is; see `Kind`"),
        "cat": Column(pl.String, "category, as the file spells it"),
        "name": Column(pl.String, "name, as the file spells it"),
        "track": Column(pl.Int32, "thread or stream: row of `tracks`"),
        "start_ns": Column(pl.Int64, "start, ns on the file's clock"),
        "dur_ns": Column(pl.Int64, "duration, ns; 0 for an instant"),
        "end_ns": Column(pl.Int64, "start plus duration"),
        "correlation": Column(
            pl.Int64, "id that a runtime call shares with the device work which it launched"
        ),
        "external": Column(
            pl.Int64, "`External id`: the operator that a runtime call or device work belongs to"
        ),
        "device": Column(pl.Int32, "device index, on device events"),
        "stream": Column(pl.Int64, "stream, on device events"),
    }
)
"""What reading fills; rows are in order of start, the longest first where starts are equal."""

LINKS: Table = MappingProxyType(
    {
        "parent": Column(
            pl.Int32, "host: the enclosing event on the same thread; device: the launching runtime call"
        ),
        "depth": Column(pl.Int32, "number of ancestors"),
        "self_ns": Column(
            pl.Int64, "time in which no nested host event runs; of device work its whole duration"
        ),
        "op": Column(pl.Int32, "innermost operator (cpu_op) at or above the event"),
        "step": Column(pl.Int32, "row of `steps`; device work belongs to the step that launched it"),
    }
)
"""What linking adds to `EVENTS`."""

TRACKS: Table = MappingProxyType(
    {
        "track": Column(pl.Int32, "row number"),
        "rank": Column(pl.Int32, "rank"),
        "pid": Column(pl.String, "process or device, as the file spells it"),
        "tid": Column(pl.String, "thread or stream, as the file spells it"),
        "process_name": Column(pl.String, "from the metadata events"),
        "thread_name": Column(pl.String, "from the metadata events"),
        "is_device": Column(pl.Boolean, "whether device events lie on it"),
    }
)

STEPS: Table = MappingProxyType(
    {
        "step": Column(pl.Int32, "row number"),
        "rank": Column(pl.Int32, "rank"),
        "name": Column(pl.String, "such as ProfilerStep#3"),
        "start_ns": Column(pl.Int64, "start"),
        "end_ns": Column(pl.Int64, "end"),
        "source": Column(
            pl.String,
            "what marks steps: engine, profiler, optimizer, loader, annotation or cycle; see `find_steps`",
        ),
    }
)

OPS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "record_function_id": Column(pl.Int64, "`Record function id`"),
        "sequence": Column(pl.Int64, "`Sequence number`: shared by a forward operator and its backward"),
        "forward_thread": Column(pl.Int64, "`Fwd thread id`: not 0 on a backward operator"),
        "index": Column(pl.Int64, "`Ev Idx`"),
        "input_dims": Column(pl.String, "shapes, as JSON text"),
        "input_types": Column(pl.String, "dtypes or C++ types, as JSON text"),
        "input_strides": Column(pl.String, "strides, as JSON text"),
        "concrete_inputs": Column(pl.String, "scalar arguments, as JSON text"),
        "call_stack": Column(pl.String, "Python stack, innermost first, separated by ;"),
        "module_hierarchy": Column(pl.String, "TorchScript modules"),
        "kernel_file": Column(pl.String, "generated source, on Triton launches of Inductor"),
    }
)
"""Arguments of operators and user annotations."""

PYTHON: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "python_id": Column(pl.Int64, "`Python id`"),
        "python_parent": Column(pl.Int64, "`Python parent id`"),
        "python_module": Column(pl.Int64, "`Python module id`: which nn.Module, on nn.Module calls"),
        "python_thread": Column(pl.Int64, "`Python thread`"),
    }
)
"""Arguments of Python functions."""

KERNELS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "grid": Column(pl.List(pl.Int64), "blocks in x, y, z"),
        "block": Column(pl.List(pl.Int64), "threads per block in x, y, z"),
        "registers_per_thread": Column(pl.Int64, ""),
        "shared_memory_bytes": Column(pl.Int64, "per block"),
        "blocks_per_sm": Column(pl.Float64, ""),
        "warps_per_sm": Column(pl.Float64, ""),
        "occupancy_percent": Column(pl.Float64, "`est. achieved occupancy %`"),
        "context": Column(pl.Int64, ""),
        "priority": Column(pl.Int64, "of the stream"),
        "graph": Column(pl.Int64, "`graph id`: the CUDA graph that launched it"),
        "graph_node": Column(pl.Int64, "`graph node id`"),
    }
)
"""Arguments of kernels."""

COPIES: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "bytes": Column(pl.Int64, "moved or set"),
        "bandwidth_gb_per_s": Column(pl.Float64, "`memory bandwidth (GB/s)`, as the profiler computed it"),
        "copy_kind": Column(pl.String, "`kind`, where the vendor writes one (AMD)"),
    }
)
"""Arguments of memcpy and memset."""

LAUNCHED: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`: a runtime or driver call"),
        "kernel": Column(pl.String, "name of the kernel that it launches"),
        "grid": Column(pl.List(pl.Int64), "blocks in x, y, z"),
        "block": Column(pl.List(pl.Int64), "threads per block in x, y, z"),
    }
)
"""What launching calls launch, where the vendor writes that (AMD): so it is known of graphs that were being captured."""

SYNCS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "sync_kind": Column(pl.String, "`cuda_sync_kind`: Event, Stream or Context Sync, Stream Wait Event"),
        "wait_stream": Column(pl.Int64, "`wait_on_stream`"),
        "wait_record_correlation": Column(pl.Int64, "`wait_on_cuda_event_record_corr_id`"),
        "wait_event": Column(pl.Int64, "`wait_on_cuda_event_id`"),
    }
)
"""Arguments of synchronisation records (`enable_cuda_sync_events`)."""

MEMORY: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "bytes": Column(pl.Int64, "allocated; negative when freed"),
        "addr": Column(pl.Int64, "address"),
        "total_allocated_bytes": Column(pl.Int64, "after the event"),
        "total_reserved_bytes": Column(pl.Int64, "after the event"),
        "device_type": Column(pl.Int64, "0 CPU, 1 CUDA, others as in c10::DeviceType"),
        "device_id": Column(pl.Int64, ""),
    }
)
"""Allocations and frees."""

COLLECTIVES: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`: an operator or a kernel"),
        "collective": Column(pl.String, "`Collective name`, such as allreduce"),
        "dtype": Column(pl.String, ""),
        "in_elements": Column(pl.Int64, "`In msg nelems`"),
        "out_elements": Column(pl.Int64, "`Out msg nelems`"),
        "group_size": Column(pl.Int64, ""),
        "group_name": Column(pl.String, "`Process Group Name`, or its id in older files"),
        "group_description": Column(pl.String, ""),
        "group_ranks": Column(pl.String, "may be cut off with ..."),
        "sequence": Column(pl.Int64, "`Seq`: number of the collective in its group"),
        "source": Column(pl.Int64, "`Src Rank`"),
        "destination": Column(pl.Int64, "`Dst Rank`"),
        "in_split": Column(pl.String, "`In split size`, may be cut off"),
        "out_split": Column(pl.String, "`Out split size`, may be cut off"),
        "is_async": Column(pl.Boolean, "`Is asynchronized op`"),
    }
)
"""Arguments of collectives."""

FLOWS: Table = MappingProxyType(
    {
        "rank": Column(pl.Int32, "rank"),
        "ph": Column(pl.String, "s start, t step, f finish"),
        "name": Column(pl.String, "ac2g (launch to device) or fwdbwd (forward to backward), or a user's own"),
        "id": Column(pl.Int64, "what start and finish share"),
        "track": Column(pl.Int32, "row of `tracks`"),
        "ts_ns": Column(pl.Int64, "where it starts or ends"),
    }
)

COUNTERS: Table = MappingProxyType(
    {
        "rank": Column(pl.Int32, "rank"),
        "name": Column(pl.String, ""),
        "track": Column(pl.Int32, "row of `tracks`"),
        "ts_ns": Column(pl.Int64, ""),
        "values": Column(pl.String, "the counter's values, as JSON text"),
    }
)

EXTRAS: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`"),
        "args": Column(pl.String, "all arguments, as JSON text"),
    }
)
"""Arguments of the kinds that have no table of their own."""

TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "events": EVENTS,
        "tracks": TRACKS,
        "ops": OPS,
        "python": PYTHON,
        "kernels": KERNELS,
        "launched": LAUNCHED,
        "copies": COPIES,
        "syncs": SYNCS,
        "memory": MEMORY,
        "collectives": COLLECTIVES,
        "flows": FLOWS,
        "counters": COUNTERS,
        "extras": EXTRAS,
    }
)
"""What reading fills. `steps` and the columns of `LINKS` come from linking."""


CAPTURED: Table = MappingProxyType(
    {
        "event": Column(pl.UInt32, "row of `events`: device work of a graph, or an event of kind `captured`"),
        "above": Column(
            pl.Int64, "what led to it when the graph was captured, in the end the call that launched it here"
        ),
    }
)
"""Of a trace that was joined to the capture of its graphs, and of no other."""


def dtypes(table: Table) -> dict[str, pl.DataType | type[pl.DataType]]:
    """A Polars schema.

    >>> dtypes(COPIES)["bytes"]
    Int64
    """
    return {name: column.dtype for name, column in table.items()}


def empty(table: Table) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=dtypes(table))
