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
    num_nodes: Annotated[int, doc("nodes of Inductor's own graph in it")]
    read_bytes: Bytes | None = None
    written_bytes: Bytes | None = None
    saved_bytes: Annotated[
        Bytes | None, doc("memory traffic spared: what its parts alone would move, less what it moves")
    ] = None
    places: Annotated[list[str], doc("the user's lines, file:line")] = []
    is_backward: bool = False
    kernel: Annotated[str, doc("the generated kernel, where that is known")] = ""


class NotFused(Record, frozen=True, kw_only=True):
    """Why two neighbours stayed apart."""

    compile_id: str
    first: str
    second: str
    first_ops: list[str] = []
    second_ops: list[str] = []
    reason: str
    shared_bytes: Annotated[Bytes | None, doc("what both touch, where known")] = None


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
    reasons: Annotated[dict[str, int], doc("how often each reason kept two nodes apart")] = {}
    memory: list[MemoryPlan] = []
    folded: list[Folding] = []
    layouts: Annotated[dict[str, int], doc("buffers by the layout that was chosen for them")] = {}
