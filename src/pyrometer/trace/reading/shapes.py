"""The JSON of an event, typed: what each kind's `args` may hold. Decoding into these skips everything else."""

from __future__ import annotations

from msgspec import Raw, Struct, field

NOTHING = Raw(b"")
"""Default of what is kept as JSON text."""

NO_ARGUMENTS = Raw(b"{}")

Number = int | float | None
Text = str | None
Whole = int | None


class Event(Struct, gc=False):
    """One entry of `traceEvents`, its arguments still undecoded."""

    ph: str = "X"
    cat: Text = None
    name: Text = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: Number = None
    dur: Number = None
    id: int | str | None = None
    args: Raw = NO_ARGUMENTS


class ExactEvent(Struct, gc=False):
    """The same with the digits of the times kept, for files whose times do not fit a float."""

    ph: str = "X"
    cat: Text = None
    name: Text = None
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: Raw = NOTHING
    dur: Raw = NOTHING
    id: int | str | None = None
    args: Raw = NO_ARGUMENTS


class OpArgs(Struct, gc=False):
    """Of operators and user annotations."""

    external: Whole = field(default=None, name="External id")
    record_function_id: Whole = field(default=None, name="Record function id")
    sequence: Whole = field(default=None, name="Sequence number")
    forward_thread: Whole = field(default=None, name="Fwd thread id")
    index: Whole = field(default=None, name="Ev Idx")
    input_dims: Raw = field(default=NOTHING, name="Input Dims")
    legacy_dims: Raw = field(default=NOTHING, name="Input dims")
    input_types: Raw = field(default=NOTHING, name="Input type")
    input_strides: Raw = field(default=NOTHING, name="Input Strides")
    concrete_inputs: Raw = field(default=NOTHING, name="Concrete Inputs")
    call_stack: Text = field(default=None, name="Call stack")
    module_hierarchy: Text = field(default=None, name="Module Hierarchy")
    kernel_file: Text = None
    collective_name: Text = field(default=None, name="Collective name")


class RuntimeArgs(Struct, gc=False):
    """Of runtime and driver calls; what they launch only AMD writes."""

    correlation: Whole = None
    external: Whole = field(default=None, name="External id")
    kernel: Text = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None


class DeviceArgs(Struct, gc=False):
    """Of device events that have no table of their own."""

    correlation: Whole = None
    external: Whole = field(default=None, name="External id")
    device: Whole = None
    stream: Whole = None


class KernelArgs(Struct, gc=False):
    """Of kernels."""

    correlation: Whole = None
    external: Whole = field(default=None, name="External id")
    device: Whole = None
    stream: Whole = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers_per_thread: Whole = field(default=None, name="registers per thread")
    shared_memory_bytes: Whole = field(default=None, name="shared memory")
    blocks_per_sm: Number = field(default=None, name="blocks per SM")
    warps_per_sm: Number = field(default=None, name="warps per SM")
    occupancy_percent: Number = field(default=None, name="est. achieved occupancy %")
    context: Whole = None
    priority: Whole = None
    graph: Whole = field(default=None, name="graph id")
    graph_node: Whole = field(default=None, name="graph node id")
    collective_name: Text = field(default=None, name="Collective name")


class CopyArgs(Struct, gc=False):
    """Of memcpy and memset."""

    correlation: Whole = None
    external: Whole = field(default=None, name="External id")
    device: Whole = None
    stream: Whole = None
    bytes: Whole = None
    bandwidth_gb_per_s: Number = field(default=None, name="memory bandwidth (GB/s)")
    copy_kind: Text = field(default=None, name="kind")


class SyncArgs(Struct, gc=False):
    """Of synchronisation records."""

    correlation: Whole = None
    external: Whole = field(default=None, name="External id")
    device: Whole = None
    stream: Whole = None
    sync_kind: Text = field(default=None, name="cuda_sync_kind")
    wait_stream: Whole = field(default=None, name="wait_on_stream")
    wait_record_correlation: Whole = field(default=None, name="wait_on_cuda_event_record_corr_id")
    wait_event: Whole = field(default=None, name="wait_on_cuda_event_id")


class PythonArgs(Struct, gc=False):
    """Of Python functions."""

    python_id: Whole = field(default=None, name="Python id")
    python_parent: Whole = field(default=None, name="Python parent id")
    python_module: Whole = field(default=None, name="Python module id")
    python_thread: Whole = field(default=None, name="Python thread")


class MemoryArgs(Struct, gc=False):
    """Of allocations and frees."""

    bytes: Whole = field(default=None, name="Bytes")
    addr: Whole = field(default=None, name="Addr")
    total_allocated_bytes: Whole = field(default=None, name="Total Allocated")
    total_reserved_bytes: Whole = field(default=None, name="Total Reserved")
    device_type: Whole = field(default=None, name="Device Type")
    device_id: Whole = field(default=None, name="Device Id")


class CollectiveArgs(Struct, gc=False):
    """Of collectives, beside those of the operator or kernel."""

    collective: Text = field(default=None, name="Collective name")
    dtype: Text = None
    in_elements: Whole = field(default=None, name="In msg nelems")
    out_elements: Whole = field(default=None, name="Out msg nelems")
    group_size: Whole = field(default=None, name="Group size")
    group_name: Text = field(default=None, name="Process Group Name")
    legacy_group: Whole = field(default=None, name="Process Group ID")
    group_description: Text = field(default=None, name="Process Group Description")
    group_ranks: Text = field(default=None, name="Process Group Ranks")
    sequence: Whole = field(default=None, name="Seq")
    source: Whole = field(default=None, name="Src Rank")
    destination: Whole = field(default=None, name="Dst Rank")
    in_split: Text = field(default=None, name="In split size")
    out_split: Text = field(default=None, name="Out split size")
    is_async: bool | str | int | None = field(default=None, name="Is asynchronized op")
