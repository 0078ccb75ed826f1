"""What the probes of `private.inductor` put into the log, as types; what does not fit them is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from pyrometer.compiler.log import CompileLog


class ProbedGroup(msgspec.Struct):
    """A group of Inductor's scheduler."""

    name: str
    kind: str = "fused"
    members: list[str] = []
    ops: list[str] = []
    nodes: list[str] = []
    num_nodes: int = 0
    reads: dict[str, int] | None = None
    writes: dict[str, int] | None = None
    saved_bytes: int | None = None
    is_reduction: bool = False
    places: list[str] = []
    kernel: str = ""


class ProbedPair(msgspec.Struct):
    """Two groups that stayed apart."""

    first: str
    second: str
    reason: str
    shared_bytes: int = 0


class ProbedBuffer(msgspec.Struct):
    """A buffer and its layout."""

    layout: str
    size: list[int] = []
    stride: list[int] = []


class ProbedGraph(msgspec.Struct):
    """One graph, or a part of one such as a branch: `pyrometer.fusion`."""

    graph: str = ""
    """Name of a part; empty for a whole graph."""
    is_backward: bool = False
    groups: list[ProbedGroup] = []
    num_buffers: int | None = None
    buffers: list[ProbedBuffer] = []
    peak_bytes: int | None = None
    not_fused: list[ProbedPair] = []
    reasons: dict[str, int] = {}
    only_counted: dict[str, int] = {}


class ProbedNode(msgspec.Struct):
    """A node of an FX graph."""

    name: str


class ProbedLoss(msgspec.Struct):
    """Nodes that were gone after a pass: `pyrometer.pass_nodes`."""

    name: str
    count: int
    nodes: list[ProbedNode] = []
    seconds: float | None = None


class ProbedPattern(msgspec.Struct):
    """Matches of one pattern in one pass: `pyrometer.pattern`."""

    pattern: str
    count: int
    nodes: list[str] = []
    places: dict[str, list[str]] = {}
    """Lines of nodes that were put in place and bear none themselves."""


T = TypeVar("T", ProbedGraph, ProbedLoss, ProbedPattern)


def read_probed(log: CompileLog, kind: type[T]) -> Iterator[tuple[str, T]]:
    """The entries of one type, each with the compilation that it belongs to."""
    names = {
        ProbedGraph: "pyrometer.fusion",
        ProbedLoss: "pyrometer.pass_nodes",
        ProbedPattern: "pyrometer.pattern",
    }
    for entry in log.of(names[kind]):
        try:
            content = msgspec.convert(entry.metadata, kind)
        except msgspec.ValidationError:  # of another version, or not ours
            continue
        yield entry.id_text, content
