"""Names that mean something, in tables that are easy to extend; all else is decided by an event's kind.

Each function gives a Polars expression over `events`. A name that matches nothing keeps the meaning of its kind: an
unknown collective counts as compute, an unknown call as runtime.
"""

from __future__ import annotations

import re

import polars as pl

from pyrometer.trace.kinds import Kind, is_annotation, is_function, is_kind
from pyrometer.workload.script.startup._pyrometer_inside import kineto

PHASE = kineto.PHASE
"""Captured phases are annotations with this prefix: `phase:forward`."""

MODULE = kineto.MODULE
"""Captured modules are annotations with this prefix: `module:encoder.layers.0`."""

TRACED_MODULE = "nn.Module: "
"""Calls of modules, as the profiler's Python tracer names them: `nn.Module: Linear_0`."""

COMMUNICATION = (
    r"(?i)^nccl|ncclDevKernel|ncclKernel|^rccl|^hccl|^gloo:|^mscclpp|cross_device_reduce|multimem|nvshmem|deep_ep|deepep"
    r"|symm_mem|one_shot_all_reduce|two_shot_all_reduce|allreduce_fusion|quick_reduce|^c10d::|^_c10d_functional::"
)
"""Kernels that move data between devices: NCCL and its kin, and custom collectives of serving engines."""

BACKEND = r"^(nccl|gloo|rccl|hccl|xccl|ucc|mpi):"
"""Annotations in which a backend runs or enqueues a collective."""

HOST_BACKEND = r"^(gloo|mpi|ucc):"
"""Of these, the ones of backends that work on the CPU: they last as long as the collective itself."""

HOST_COMMUNICATION = rf"{HOST_BACKEND}|^_c10d_functional::wait_tensor$|^c10d::monitored_barrier_$"
"""Collectives that a host thread runs or waits for, as its own time tells: what lasts as long as the collective.

The operators `c10d::…` and `record_param_comms` only enqueue, and are not among them.
"""

MAY_WAIT = (
    r"^autograd::engine|AccumulateGrad|^record_param_comms$|^c10d::|^_c10d_functional|^symm_mem::|wait_tensor"
    r"|^DistributedDataParallel"
)
"""Operators in which a host thread may do nothing but wait for a collective that another thread runs: no computing."""

BLOCKING = (
    r"^(cuda|hip|xpu|mtia)(Device|Stream|Event|Ctx)Synchronize|^cu(Ctx|Stream|Event)Synchronize|^hipMemcpyWithStream$"
    r"|^(cuda|hip)Memcpy$|^aten::(item|_local_scalar_dense)$|^(cuda|hip)Free$"
)
"""Calls in which the host waits for a device."""

THREAD_WAIT = r"^<(built-in )?method '?(acquire|__enter__|join|wait|get|put|poll|select)'? of '?(_thread|_queue|select)\."
"""Functions in which a Python thread waits for another, or for news, as the profiler's Python tracer names them."""

STEP_MARK = r"^ProfilerStep[#*]?\s*\d+$"
"""What the profiler writes around each step."""

DATA_LOADING = r"enumerate\(DataLoader\)|DataLoader.*__next__|dataloader\.py\(\d+\): __next__|^phase:data$"
"""Annotations and functions in which a step waits for its data."""

BACKWARD = r"^autograd::engine::evaluate_function"
"""Operators in which autograd runs one node of the backward pass."""


BEGIN_CAPTURE = r"^(cuda|cu|hip)(Thread)?StreamBeginCapture"
END_CAPTURE = r"^(cuda|cu|hip)(Thread)?StreamEndCapture"
"""Between these calls what a thread launches goes into a graph, and does not run."""

LAUNCH_SITE = r"^(cuda|cu|hip)\w*Launch\w*Kernel"
MEMORY_SITE = re.compile(r"^(?:cuda|cu|hip)(Memcpy|Memset)\w*Async")
"""Calls that put a kernel, a copy or a fill into a graph that is being captured."""


def begins_capture() -> pl.Expr:
    """Calls after which launches go into a graph."""
    return pl.col("name").str.contains(BEGIN_CAPTURE)


def ends_capture() -> pl.Expr:
    """Calls that end this."""
    return pl.col("name").str.contains(END_CAPTURE)


def is_launch_site() -> pl.Expr:
    """Calls that launch a kernel, a copy or a fill."""
    return pl.col("name").str.contains(f"{LAUNCH_SITE}|{MEMORY_SITE.pattern}")


def is_graph_launch() -> pl.Expr:
    """Calls that launch a whole graph."""
    return pl.col("name").str.contains(r"^(cuda|cu|hip)GraphLaunch")


def is_communication() -> pl.Expr:
    """Kernels, and on the CPU operators, that exchange data between ranks."""
    return pl.col("name").str.contains(COMMUNICATION)


def is_host_communication() -> pl.Expr:
    """Annotations and operators during which a host thread runs a collective or waits for one."""
    return is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP) & pl.col("name").str.contains(HOST_COMMUNICATION)


def is_blocking_call() -> pl.Expr:
    """Runtime and driver calls, or operators, in which the host waits for a device."""
    return pl.col("name").str.contains(BLOCKING)


def is_thread_wait() -> pl.Expr:
    """Python functions in which a thread waits for another one."""
    return is_function() & pl.col("name").str.contains(THREAD_WAIT)


def is_data_loading() -> pl.Expr:
    """Host events in which a step waits for its data."""
    return is_kind(Kind.USER_ANNOTATION, Kind.CPU_OP, Kind.PYTHON_FUNCTION) & pl.col("name").str.contains(
        DATA_LOADING
    )


def is_step_mark() -> pl.Expr:
    """The profiler's marks of steps: annotations, and in old files operators, that say nothing of what runs."""
    return pl.col("name").str.contains(STEP_MARK).fill_null(value=False)


def is_module() -> pl.Expr:
    """Calls of an `nn.Module`, as the profiler's Python tracer or our own capture (`module:encoder.layers.0`) marks them."""
    name = pl.col("name")
    return (is_function() & name.str.starts_with(TRACED_MODULE)) | (
        is_annotation() & name.str.starts_with(MODULE)
    )


def is_phase() -> pl.Expr:
    """Phases of a step, as our own capture marks them: `phase:forward`."""
    return (pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.starts_with(PHASE)


def module_names(names: pl.Series) -> pl.Series:
    """Names of modules, without what marks calls of them.

    >>> module_names(pl.Series(["module:encoder.0", "nn.Module: Linear_0"])).to_list()
    ['encoder.0', 'Linear_0']
    """
    return names.str.replace(rf"^({re.escape(TRACED_MODULE)}|{MODULE})", "")
