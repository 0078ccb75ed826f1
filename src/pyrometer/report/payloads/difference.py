"""Two call trees laid over each other: one node per path, with what it took before and after."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.documents import Document, TraceDocument
from pyrometer.report.history_documents import CompareDocument
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.trace.view.record import TraceView


class SideCalls(Record, frozen=True, kw_only=True):
    """One side of a comparison; its columns have a value per node, whole recordings, never rounded."""

    label: Annotated[str, doc("the file, or what was captured")]
    num_steps: Annotated[int, doc("that it marks; 0 where it marks none")]
    divide_by: Annotated[int, doc("what every value is shown divided by: its steps, or 1 for the whole")]
    calls: list[int]
    self_ns: Annotated[list[int], doc("host time of the node without those below it")]
    device_self_ns: Annotated[list[int], doc("device work that the node is")]


class CallDifference(Record, frozen=True, kw_only=True):
    """Two call trees merged by path; what is at or below a node is the sum of what is its own over all of them."""

    names: list[str]
    kinds: list[str]
    parent: Annotated[list[int], doc("index of the parent, which comes before it; -1 for the root")]
    name: Annotated[list[int], doc("row of names; that of the later side where they differ")]
    kind: Annotated[list[int], doc("row of kinds")]
    before: SideCalls
    after: SideCalls
    per_step: Annotated[bool, doc("whether both sides are divided by their steps")]
    notice: Annotated[str, doc("what is compared with what, and what was merged or cut")]


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """`difference/0` for a comparison of two traces whose call trees are at hand; the first is the one before."""
    if compares(document) and len(attachments.traces) == 2:
        before, after = attachments.traces
        if before.calls.parent and after.calls.parent:
            yield block_of("difference/0", difference_of(before, after))


def compares(document: Document) -> bool:
    """Whether it is about two recordings beside each other."""
    return isinstance(document, CompareDocument) or (
        isinstance(document, TraceDocument) and document.diff is not None
    )


def difference_of(before: TraceView, after: TraceView) -> CallDifference:
    """Lay one call tree over another.

    Calls are the same where their names, kinds and all callers are, but for what differs between runs of one program:
    numbers of threads, steps and graphs, and the lines on which Python functions stand. Where both sides mark steps they are
    compared per step, else as a whole. No time is lost: the nodes of a side sum to its recording.
    """
    nodes = _Nodes()
    twins = pair_threads(before, after)
    later = nodes.places(after, lambda node: f"thread {node}")
    earlier = nodes.places(before, lambda node: f"thread {twins.get(node, f'before {node}')}")
    per_step = bool(before.steps and after.steps)
    return CallDifference(
        names=list(nodes.names),
        kinds=list(nodes.kinds),
        parent=nodes.parent,
        name=nodes.name,
        kind=nodes.kind,
        before=_side(before, earlier, len(nodes.parent), per_step=per_step),
        after=_side(after, later, len(nodes.parent), per_step=per_step),
        per_step=per_step,
        notice=_notice(before, after),
    )


class _Nodes:
    """The merged tree as it grows: a node per path."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.parent: list[int] = []
        self.name: list[int] = []
        self.kind: list[int] = []
        self._known: dict[tuple[int, str, str], int] = {}

    def places(self, view: TraceView, thread: Callable[[int], str]) -> list[int]:
        """The node of each call; threads are told apart by what the function calls them."""
        calls = view.calls
        keys = [comparable(name, kind) for name, kind in _labels(view)]
        placed: list[int] = []
        for node, (parent, (name, kind)) in enumerate(zip(calls.parent, _labels(view), strict=True)):
            above = placed[parent] if parent >= 0 else -1
            key = "" if parent < 0 else thread(node) if kind == "thread" else keys[node]
            placed.append(self._node((above, key, kind), name))
        return placed

    def _node(self, path: tuple[int, str, str], name: str) -> int:
        node = self._known.setdefault(path, len(self.parent))
        if node == len(self.parent):
            self.parent.append(path[0])
            self.name.append(self.names.setdefault(name, len(self.names)))
            self.kind.append(self.kinds.setdefault(path[2], len(self.kinds)))
        return node


_LINE = re.compile(r"\(\d+\)(?=: )")
_LOADER = re.compile(r"^enumerate\(DataLoader\)#\w+")
_GRAPH = re.compile(r"CompiledFxGraph \w+")
_NUMBER = re.compile(r"\d+")


def comparable(name: str, kind: str) -> str:
    """A name without what differs between two runs of one program.

    >>> comparable("train.py(31): step", "python_function"), comparable("epoch 7", "user_annotation")
    ('train.py: step', 'epoch #')
    >>> comparable("module:layers.0", "user_annotation"), comparable("nn.Module: Linear_0", "python_function")
    ('module:layers.0', 'nn.Module: Linear_0')
    """
    if kind == "python_function":
        return _LINE.sub("", name)
    name = _GRAPH.sub("CompiledFxGraph", _LOADER.sub("enumerate(DataLoader)#", name))
    return _NUMBER.sub("#", name) if kind == "user_annotation" and not name.startswith("module:") else name


class _Thread(NamedTuple):
    node: int
    name: str
    weight: int
    callees: frozenset[str]


def pair_threads(before: TraceView, after: TraceView) -> dict[int, int]:
    """The thread after that is each thread before: of the same name, the same but for numbers, or with a callee in common.

    Larger threads choose first, and none is chosen twice.
    """
    left, right = _threads(before), _threads(after)
    twins: dict[int, int] = {}
    alike: tuple[Callable[[_Thread, _Thread], bool], ...] = (
        lambda a, b: a.name == b.name,
        lambda a, b: _NUMBER.sub("#", a.name) == _NUMBER.sub("#", b.name),
        lambda a, b: not a.callees.isdisjoint(b.callees),
    )
    for is_alike in alike:
        for mine in left:
            taken = set(twins.values())
            if mine.node not in twins:
                nodes = [
                    thread.node for thread in right if thread.node not in taken and is_alike(mine, thread)
                ]
                if nodes:
                    twins[mine.node] = nodes[0]
    return twins


def _threads(view: TraceView) -> list[_Thread]:
    """The threads of a side, the largest first."""
    calls, labels = view.calls, list(_labels(view))
    callees: dict[int, set[str]] = {node: set() for node, (_, kind) in enumerate(labels) if kind == "thread"}
    for parent, label in zip(calls.parent, labels, strict=True):
        if parent in callees:
            callees[parent].add(comparable(*label))
    threads = [
        _Thread(node, labels[node][0], calls.total_ns[node] + calls.device_ns[node], frozenset(below))
        for node, below in callees.items()
    ]
    return sorted(threads, key=lambda thread: -thread.weight)


def _labels(view: TraceView) -> Iterator[tuple[str, str]]:
    """Name and kind of each call."""
    for name, kind in zip(view.calls.name, view.calls.kind, strict=True):
        yield view.names[name], view.kinds[kind]


def _side(view: TraceView, placed: list[int], num_nodes: int, *, per_step: bool) -> SideCalls:
    columns = []
    for values in (view.calls.calls, view.calls.self_ns, view.calls.device_self_ns):
        sums = [0] * num_nodes
        for node, value in zip(placed, values, strict=True):
            sums[node] += value
        columns.append(sums)
    return SideCalls(
        label=view.path,
        num_steps=len(view.steps),
        divide_by=len(view.steps) if per_step else 1,
        calls=columns[0],
        self_ns=columns[1],
        device_self_ns=columns[2],
    )


def _notice(before: TraceView, after: TraceView) -> str:
    counts = len(before.steps), len(after.steps)
    if all(counts):
        said = [
            f"times and calls are per step: each recording as a whole, divided by its steps ({counts[0]:,} before, {counts[1]:,} after)"
        ]
    else:
        said = [
            "whole recordings are compared, since "
            + ("neither marks steps" if not any(counts) else "only one marks steps")
            + "; one that is longer took more of everything"
        ]
    said += [f"{side}: {view.notice}" for side, view in (("before", before), ("after", after)) if view.notice]
    return "; ".join(said)
