"""Records of what Inductor did to operations and buffers."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class FusedGroup(Record, frozen=True, kw_only=True):
    """Operations that run as one kernel, or one that runs alone."""

    compile_id: str
    name: str
    kind: Annotated[str, doc("fused, pointwise, reduction, extern, template or nop")]
    ops: Annotated[list[str], doc("operators that it computes: aten.add.Tensor, …")]
    num_nodes: Annotated[int, doc("nodes of Inductor's own graph in it; 0 when unknown")]
    read_bytes: Bytes | None = None
    written_bytes: Bytes | None = None
    saved_bytes: Annotated[
        Bytes | None,
        doc(
            "memory traffic spared: what its operators would move as a kernel each, less what it moves; an operator that several groups compute counts in each with its share"
        ),
    ] = None
    places: Annotated[list[str], doc("the user's lines, file:line")] = []
    is_backward: bool = False
    kernel: Annotated[str, doc("the generated kernel, where that is known")] = ""
    is_reduction: bool = False
    vectorized: Annotated[
        bool | None,
        doc("whether its kernel's loops use vector instructions; null off the CPU, or if unknown"),
    ] = None


class NotFused(Record, frozen=True, kw_only=True):
    """Why two neighbours stayed apart."""

    compile_id: str
    first: str
    second: str
    first_ops: list[str] = []
    second_ops: list[str] = []
    reason: str
    shared_bytes: Annotated[Bytes | None, doc("what both touch, where known")] = None
    meaning: Annotated[str, doc("the reason in plain words; empty when it is not a known one")] = ""
    advice: Annotated[str, doc("what may be done about it; empty when there is nothing")] = ""
    is_backward: bool = False


class MemoryPlan(Record, frozen=True, kw_only=True):
    """Buffers of one compiled graph."""

    compile_id: str
    is_backward: bool = False
    num_buffers: int | None = None
    reused: int | None = None
    allocated: int | None = None
    peak_bytes: Annotated[Bytes | None, doc("Inductor's own estimate, not a measurement")] = None


class Folding(Record, frozen=True, kw_only=True):
    """Nodes that were computed at compile time, or matched a pattern."""

    compile_id: str
    name: Annotated[str, doc("the pass or the pattern")]
    count: int
    nodes: Annotated[list[str], doc("nodes that went away, where known")] = []
    kind: Annotated[str, doc("constant, pattern or noop")]
    seconds: Seconds | None = None


class FusionReport(Record, frozen=True, kw_only=True):
    """All of it; what is empty was not asked for, or not told (see `unavailable`)."""

    groups: list[FusedGroup] = []
    not_fused: list[NotFused] = []
    reasons: Annotated[
        dict[str, int], doc("pairs of groups that each reason kept apart, the most frequent first")
    ] = {}
    only_counted: Annotated[
        int, doc("refusals beyond those that are kept per graph; not in reasons, nor in not_fused")
    ] = 0
    memory: list[MemoryPlan] = []
    folded: list[Folding] = []
    layouts: Annotated[dict[str, int], doc("buffers by the layout that was chosen for them")] = {}
