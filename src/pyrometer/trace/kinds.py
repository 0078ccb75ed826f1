"""What an event is: one small set of kinds, whatever the vendor or the age of the file called its category."""

from __future__ import annotations

import enum
import re
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl


class Kind(enum.StrEnum):
    """What an event of a trace is, decided by its category and never by its name.

    The values are listed from the outermost to the innermost that a host thread nests when two intervals are equal.
    `captured` is what was recorded when a graph was captured, beside a launch of that graph: it takes no time here, and
    its category says what it was.
    """

    USER_ANNOTATION = "user_annotation"
    PYTHON_FUNCTION = "python_function"
    CPU_OP = "cpu_op"
    RUNTIME = "runtime"
    DRIVER = "driver"
    KERNEL = "kernel"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    SYNC = "sync"
    DEVICE_EVENT = "device_event"
    GPU_USER_ANNOTATION = "gpu_user_annotation"
    COLLECTIVE = "collective"
    OVERHEAD = "overhead"
    TRACE = "trace"
    MEMORY = "memory"
    INSTANT = "instant"
    PROFILER_RANGE = "profiler_range"
    OTHER = "other"
    CAPTURED = "captured"


HOST = (Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION, Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
"""Kinds that nest on host threads and make up the call tree."""

CALLS = (Kind.RUNTIME, Kind.DRIVER)
"""Kinds of calls into the device's runtime and driver."""

DEVICE_WORK = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
"""Kinds that keep a device busy; a `sync` on a stream is waiting, a `gpu_user_annotation` is a label."""

KIND_OF_CATEGORY = {
    "cpu_op": Kind.CPU_OP,
    "operator": Kind.CPU_OP,
    "user_annotation": Kind.USER_ANNOTATION,
    "user": Kind.USER_ANNOTATION,
    "gpu_user_annotation": Kind.GPU_USER_ANNOTATION,
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,  # and copies and waits: see `KIND_OF_NAME`
    "privateuse1_kernel": Kind.KERNEL,
    "xpu_kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "xpu_memcpy": Kind.MEMCPY,
    "privateuse1_memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "xpu_memset": Kind.MEMSET,
    "privateuse1_memset": Kind.MEMSET,
    "cuda_runtime": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "privateuse1_driver": Kind.DRIVER,
    "xpu_driver": Kind.DRIVER,
    "cuda_sync": Kind.SYNC,
    "cuda_event": Kind.DEVICE_EVENT,
    "python_function": Kind.PYTHON_FUNCTION,
    "python": Kind.PYTHON_FUNCTION,
    "cpu_instant_event": Kind.INSTANT,
    "collective_comm": Kind.COLLECTIVE,
    "overhead": Kind.OVERHEAD,
    "cuda_profiler_range": Kind.PROFILER_RANGE,
    "trace": Kind.TRACE,
}
"""Category in lower case, as Kineto and its predecessors write it; anything else is `other`, kept and counted."""


KIND_OF_NAME: dict[str, tuple[tuple[str, Kind], ...]] = {
    "mtia_ccp_events": (
        (r"(?i)^dma|memcpy", Kind.MEMCPY),
        (r"(?i)event[_ ]?wait|wait[_ ](for[_ ])?event", Kind.SYNC),
    ),
}
"""Categories in which only the name tells kernels, copies and waits apart: the device's one kind of record on MTIA."""


def kind_of(category: str | None, name: str | None = None) -> Kind:
    """The kind of a category, and where it holds several of them, of a name.

    >>> kind_of("gpu_memcpy").value, kind_of("Operator").value, kind_of("hardware_counters").value
    ('memcpy', 'cpu_op', 'other')
    >>> kind_of("mtia_ccp_events", "dma_request").value, kind_of("mtia_ccp_events", "fc_kernel").value
    ('memcpy', 'kernel')
    """
    lowered = (category or "").lower()
    named = (kind for pattern, kind in KIND_OF_NAME.get(lowered, ()) if re.search(pattern, name or ""))
    return next(named, KIND_OF_CATEGORY.get(lowered, Kind.OTHER))


@cache
def is_kind(*kinds: Kind | str) -> pl.Expr:
    """Events of these kinds.

    Raises:
        ValueError: there is no such kind.

    >>> pl.DataFrame({"kind": ["kernel", "sync"]}).filter(is_kind(*DEVICE_WORK)).height
    1
    """
    return pl.col("kind").is_in([Kind(kind).value for kind in kinds])


def kind_mask(column: pl.Series, *kinds: Kind | str) -> npt.NDArray[np.bool_]:
    """Which entries of a column of kinds are one of these; many times faster than looking for names.

    >>> kind_mask(pl.Series(["kernel", "sync"], dtype=pl.Enum(Kind)), *DEVICE_WORK).tolist()
    [True, False]
    """
    codes = column.to_physical().to_numpy()
    found: npt.NDArray[np.bool_] = np.logical_or.reduce([codes == _CODES[Kind(kind)] for kind in kinds])
    return found


_CODES = {kind: code for code, kind in enumerate(Kind)}


def is_op() -> pl.Expr:
    """Operators: those that ran here, and those recorded when a graph was captured that was launched here."""
    return is_kind(Kind.CPU_OP) | _was_captured(Kind.CPU_OP)


def is_function() -> pl.Expr:
    """Python functions: those that ran here, and those recorded when a graph was captured that was launched here."""
    return is_kind(Kind.PYTHON_FUNCTION) | _was_captured(Kind.PYTHON_FUNCTION)


def is_annotation() -> pl.Expr:
    """Users' annotations: those made here, and those around what was recorded when a graph was captured."""
    return is_kind(Kind.USER_ANNOTATION) | _was_captured(Kind.USER_ANNOTATION)


def _was_captured(kind: Kind) -> pl.Expr:
    return is_kind(Kind.CAPTURED) & (pl.col("cat") == kind.value)
