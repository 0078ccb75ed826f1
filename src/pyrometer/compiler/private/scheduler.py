"""Inductor's scheduler as it stands when code is generated: groups, traffic, buffers, estimated peak.

`torch._inductor.scheduler.Scheduler.codegen` is called once per graph, when fusing and reordering are done. It is
there since torch 2.0. Standing in front of it, and not in `config._post_fusion_custom_pass`, leaves the cache key and the
user's own passes as they are. All of the scheduler is private; what is not there, or fails, is not told.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrometer.compiler.private.operators import is_operator, is_view, op_names, traffic_bytes, user_line
from pyrometer.compiler.private.probing import Sink, Wall, replaced
from pyrometer.compiler.private.refusals import Refusals

MAX_BUFFERS = 5000
"""Layouts that are told per graph; the number of buffers is told in full."""


class SchedulerProbe:
    """Tells each graph of Inductor as an entry `fusion`."""

    def __init__(self, sink: Sink, refusals: Refusals) -> None:
        self._sink = sink
        self._refusals = refusals
        self._groups = Wall(sink, "fused groups")
        self._plan = Wall(sink, "buffers of a graph")
        self._peak = Wall(sink, "Inductor's estimate of peak memory")
        self._pairs = Wall(sink, "why nodes were not fused")
        self._names = Wall(sink, "names of kernels")
        self._kernels = threading.local()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch for the length of this context."""
        from torch._inductor import scheduler

        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(scheduler.Scheduler, "codegen", self._around_codegen))
            for module in _kernel_namers():
                stack.enter_context(
                    replaced(module, "set_kernel_post_grad_provenance_tracing", self._around_naming)
                )
            yield

    def _around_codegen(self, original: Any) -> Any:
        def codegen(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            description: dict[str, Any] = {}
            with self._groups():
                description = self._describe(scheduler)
            outer, self._kernels.by_op = getattr(self._kernels, "by_op", None), {}
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                kernels, self._kernels.by_op = self._kernels.by_op, outer
                with self._groups():
                    if description:
                        self._emit(description, kernels)

        return codegen

    def _around_naming(self, original: Any) -> Any:
        def named(schedule: Any, kernel: str, *args: Any, **kwargs: Any) -> Any:
            by_op: dict[str, str] | None = getattr(self._kernels, "by_op", None)
            with self._names():
                if by_op is not None:
                    by_op.update(dict.fromkeys(_op_names(schedule), kernel))
            return original(schedule, kernel, *args, **kwargs)

        return named

    def _describe(self, scheduler: Any) -> dict[str, Any]:
        from torch._inductor.virtualized import V

        graph = V.graph
        groups = _groups(scheduler.nodes, graph.module.graph)
        description = {
            "graph": str(getattr(graph, "name", None) or ""),
            "is_backward": bool(getattr(graph, "is_backward", False)),
            "groups": groups,
        }
        with self._plan():
            description["num_buffers"] = len(scheduler.name_to_buf)
            description["buffers"] = _buffers(list(scheduler.name_to_buf.values())[:MAX_BUFFERS], graph)
        with self._peak():
            description["peak_bytes"] = _peak_bytes(scheduler, graph)
        with self._pairs():
            description.update(self._refusals.taken(graph, groups))
        return description

    def _emit(self, found: dict[str, Any], kernels: Mapping[str, str]) -> None:
        for group in found["groups"]:
            group["kernel"] = next((kernels[op] for op in group["members"] if op in kernels), "")
        self._sink.emit("fusion", found)


def _kernel_namers() -> list[Any]:
    """The modules in which Inductor's codegen looks up the function that is told each kernel's name and nodes."""
    from torch._inductor import debug
    from torch._inductor.codegen import cpp, triton

    return [
        module for module in (debug, cpp, triton) if "set_kernel_post_grad_provenance_tracing" in vars(module)
    ]


def _op_names(schedule: Any) -> list[str]:
    """Names of the scheduler's operations in what is said of a kernel: a list of its nodes, or one ready-made one."""
    if isinstance(schedule, Sequence):
        return [node.get_name() for node in schedule if getattr(node, "node", None) is not None]
    return [schedule.get_operation_name()]


def _groups(nodes: Sequence[Any], own_graph: Any) -> list[dict[str, Any]]:
    origins = [_origins(node, own_graph) for node in nodes]
    shares = Counter(origin.name for group in origins for origin in group)
    return [_group(node, ops, shares) for node, ops in zip(nodes, origins, strict=True)]


def _origins(node: Any, own_graph: Any) -> list[Any]:
    """Operators of the graph that a node of the scheduler computes, in the order of the graph."""
    parts = [part.node for part in node.get_nodes() if part.node is not None]
    exact = parts[0].get_origin_node() if node.is_extern() and len(parts) == 1 else None
    origins = {exact} if exact is not None else {origin for part in parts for origin in part.get_origins()}
    found = [origin for origin in origins if is_operator(origin)]
    inside = [origin for origin in found if origin.graph is own_graph]  # not the branch that it is a part of
    computed = [origin for origin in inside if not is_view(origin)]
    return sorted(computed or inside or found)


def _group(node: Any, ops: Sequence[Any], shares: Mapping[str, int]) -> dict[str, Any]:
    reads = node.get_read_write_buffer_accesses(include_reads=True, include_writes=False)
    writes = node.get_read_write_buffer_accesses(include_reads=False, include_writes=True)
    parts = node.get_nodes()
    return {
        "name": node.get_name(),
        "class": type(node).__name__,
        "kind": _kind(node, len(ops) > 1 or len(parts) > 1),
        "members": [part.get_name() for part in parts],
        "ops": [name for op in ops for name in op_names(op)],
        "nodes": [op.name for op in ops],
        "num_nodes": len(parts),
        "reads": {name: int(num_bytes) for name, num_bytes in reads.items()},
        "writes": {name: int(num_bytes) for name, num_bytes in writes.items()},
        "saved_bytes": _saved_bytes(ops, shares, int(sum(reads.values()) + sum(writes.values()))),
        "is_reduction": bool(node.is_reduction()),
        "is_extern": bool(node.is_extern()),
        "places": list(dict.fromkeys(filter(None, (user_line(op) for op in ops)))),
    }


def _kind(node: Any, has_several: bool) -> str:
    name, own = type(node).__name__, type(node.node).__name__
    if name.startswith("Nop") or own == "MultiOutput":
        return "nop"
    if node.is_template():
        return "template"
    if node.is_extern():
        return "extern"
    if has_several:
        return "fused"
    return "reduction" if node.is_reduction() else "pointwise"


def _saved_bytes(ops: Sequence[Any], shares: Mapping[str, int], moved: int) -> int | None:
    """Traffic of the operators alone, less the group's; what several groups compute is shared between them."""
    if len(ops) < 2:  # nothing was put together
        return 0
    alone = [(traffic_bytes(op), shares[op.name]) for op in ops]
    if any(num_bytes is None for num_bytes, _ in alone):
        return None
    return sum((num_bytes or 0) // share for num_bytes, share in alone) - moved


def _buffers(buffers: Sequence[Any], graph: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": buffer.get_name(),
            "layout": type(layout).__name__,
            "size": _hints(graph, getattr(layout, "size", [])),
            "stride": _hints(graph, getattr(layout, "stride", [])),
        }
        for buffer in buffers
        for layout in [buffer.node.layout]
    ]


def _hints(graph: Any, sizes: Any) -> list[int]:
    """Sizes as numbers; an open size counts as it is in this compilation."""
    variables = graph.sizevars
    hint = getattr(variables, "optimization_hint", None) or variables.size_hint
    return [int(hint(size, fallback=-1)) for size in sizes]


def _peak_bytes(scheduler: Any, graph: Any) -> int:
    """Inductor's own estimate for the order that it settled on; what it notes on buffers meanwhile is put back."""
    from torch._inductor import memory
    from torch.utils._ordered_set import OrderedSet

    nodes, buffers = scheduler.nodes, scheduler.name_to_buf
    notes = {name: buffer.mpi_buffer for name, buffer in buffers.items() if hasattr(buffer, "mpi_buffer")}
    try:
        memory.assign_memory_planning_info_for_scheduler_buffers(nodes, buffers)
        inputs = memory.get_freeable_input_buf(nodes, OrderedSet(graph.graph_inputs.keys()))
        return int(memory.estimate_peak_memory(nodes, inputs, OrderedSet(graph.get_output_names()))[0])
    finally:
        for name, note in notes.items():
            buffers[name].mpi_buffer = note


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    try:
        from torch._inductor import memory, scheduler
    except ImportError:
        return ["fused groups: this torch has no torch._inductor.scheduler"]
    return [
        text
        for text, owner, name in (
            ("fused groups: this torch's Scheduler has no codegen", scheduler.Scheduler, "codegen"),
            (
                "bytes of fused groups: this torch's scheduler nodes do not tell them by buffer",
                scheduler.BaseSchedulerNode,
                "get_read_write_buffer_accesses",
            ),
            (
                "Inductor's estimate of peak memory: this torch has no estimate_peak_memory",
                memory,
                "estimate_peak_memory",
            ),
        )
        if not hasattr(owner, name)
    ]
