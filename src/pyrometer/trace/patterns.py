"""Names that mean something, in tables that are easy to extend; all else is decided by an event's kind.

Each function gives a Polars expression over `events`. A name that matches nothing keeps the meaning of its kind: an
unknown collective counts as compute, an unknown call as runtime.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.kinds import Kind

PHASE = "phase:"
"""Captured phases are annotations with this prefix: `phase:forward`."""

MODULE = "module:"
"""Captured modules are annotations with this prefix: `module:encoder.layers.0`."""

COMMUNICATION = (
    r"(?i)^nccl|ncclDevKernel|ncclKernel|^rccl|^hccl|^gloo:|^mscclpp|cross_device_reduce|multimem|nvshmem|deep_ep|deepep"
    r"|symm_mem|one_shot_all_reduce|two_shot_all_reduce|allreduce_fusion|quick_reduce|^c10d::|^_c10d_functional::"
)
"""Kernels that move data between devices: NCCL and its kin, and custom collectives of serving engines."""

BLOCKING = (
    r"^(cuda|hip|xpu|mtia)(Device|Stream|Event|Ctx)Synchronize|^cu(Ctx|Stream|Event)Synchronize|^hipMemcpyWithStream$"
    r"|^(cuda|hip)Memcpy$|^aten::(item|_local_scalar_dense)$|^(cuda|hip)Free$"
)
"""Calls in which the host waits for a device."""

DATA_LOADING = r"enumerate\(DataLoader\)|DataLoader.*__next__|dataloader\.py\(\d+\): __next__|^phase:data$"
"""Annotations and functions in which a step waits for its data."""

LIBRARY_FRAME = (
    r"^<built-in|^<string>|^<frozen|^nn\.Module: |^\.\.\.|(^|/)(site-packages|dist-packages)/|(^|/)torch/|^torch/"
    r"|/lib/python3[.\d]*/|^(threading|contextlib|importlib|functools|runpy|abc|collections|typing|enum|copy|random|json"
    r"|asyncio|concurrent|multiprocessing|queue|selectors|socket|logging|inspect|ast|re|os|posixpath|weakref|warnings"
    r"|dataclasses|tempfile|pathlib|io|codecs|subprocess|signal)(/[\w/]*)?(\.py)\(|(^|/)pyrometer/"
)
"""Python functions of libraries: not where a user would look for a line to change."""


def is_communication() -> pl.Expr:
    """Kernels, and on the CPU operators, that exchange data between ranks."""
    return pl.col("name").str.contains(COMMUNICATION)


def is_blocking_call() -> pl.Expr:
    """Runtime and driver calls, or operators, in which the host waits for a device."""
    return pl.col("name").str.contains(BLOCKING)


def is_data_loading() -> pl.Expr:
    """Host events in which a step waits for its data."""
    return pl.col("kind").is_in(
        [Kind.USER_ANNOTATION.value, Kind.CPU_OP.value, Kind.PYTHON_FUNCTION.value]
    ) & pl.col("name").str.contains(DATA_LOADING)


def is_library_frame() -> pl.Expr:
    """Python functions outside the user's own code."""
    return pl.col("name").str.contains(LIBRARY_FRAME)


def is_module() -> pl.Expr:
    """Calls of an `nn.Module`, as the profiler's Python tracer or our own capture marks them."""
    return (
        (pl.col("kind") == Kind.PYTHON_FUNCTION.value) & pl.col("name").str.starts_with("nn.Module: ")
    ) | ((pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.starts_with(MODULE))


def is_phase() -> pl.Expr:
    """Phases of a step, as our own capture marks them."""
    return (pl.col("kind") == Kind.USER_ANNOTATION.value) & pl.col("name").str.starts_with(PHASE)
