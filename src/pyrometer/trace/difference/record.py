"""What the comparison of two traces says."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc

Outcome = Literal["faster", "slower", "same", "undecided"]
Status = Literal["common", "replaced", "added", "removed"]


class Difference(Record, frozen=True, kw_only=True):
    """One circumstance in which the traces differ."""

    field: Annotated[str, doc("program, device, world_size, shapes, work, options, versions, compilation, …")]
    a: str
    b: str
    message: Annotated[str, doc("what it means for the comparison")]
    withholds: Annotated[bool, doc("whether no verdict is given because of it")] = False


class TimeChange(Record, frozen=True, kw_only=True):
    """A time per step on both sides, ns, and its ratio b/a."""

    a_ns: Annotated[
        float, doc("median over steps; mean of what takes place in fewer than half of them on both sides")
    ]
    b_ns: float
    ratio: Annotated[Ratio | None, doc("of the medians; null where a side is 0 in some step")]
    ci_low: Annotated[Ratio | None, doc("null below three steps a side")] = None
    ci_high: Ratio | None = None

    @property
    def delta_ns(self) -> float:
        """Change per step."""
        return self.b_ns - self.a_ns


class NodeChange(Record, frozen=True, kw_only=True):
    """A node of the call tree; its times are those that no matched node below it has, so that nothing counts twice."""

    path: Annotated[list[str], doc("names from the outermost, of side a where it has the node")]
    status: Annotated[Status, doc("replaced: matched by its place, under another name")]
    replaced_by: Annotated[str | None, doc("name on side b, where that differs")] = None
    calls_a: Annotated[float, doc("per step")]
    calls_b: float
    host: TimeChange
    device: TimeChange
    added: Annotated[list[str], doc("directly below it on side b only")] = []
    removed: Annotated[list[str], doc("directly below it on side a only")] = []


class NamedChange(Record, frozen=True, kw_only=True):
    """All work of one name: an operator (host time, its own) or a kernel (device time)."""

    name: str
    status: Status
    calls_a: float
    calls_b: float
    time: TimeChange


class GroupChange(Record, frozen=True, kw_only=True):
    """All work of one phase or module, where both sides know it; what compiled and eager programs have in common."""

    by: Literal["phase", "module"]
    name: str
    host: TimeChange
    device: TimeChange


class PartChange(Record, frozen=True, kw_only=True):
    """A part of the breakdown, ns: of all steps their median, or mean, as that of the step; medians do not add up."""

    name: str
    a_ns: float
    b_ns: float


class TraceDiff(Record, frozen=True, kw_only=True):
    """What changed from trace a to trace b.

    Two traces are two runs, one after the other: their steps show what differs between the runs, not why.
    """

    outcome: Outcome
    sentence: Annotated[str, doc("the verdict in fixed words")]
    step: Annotated[TimeChange, doc("the time of a step")]
    num_steps_a: int
    num_steps_b: int
    confidence: Annotated[float, doc("coverage of each interval")]
    margin: Annotated[float, doc("how far two runs of one program may differ by themselves")]
    differences: Annotated[list[Difference], doc("circumstances in which the sides differ")] = []
    parts: Annotated[list[PartChange], doc("where the step went, on both sides")] = []
    nodes: Annotated[
        list[NodeChange], doc("the largest changes at the lowest node that both sides have")
    ] = []
    operators: list[NamedChange] = []
    kernels: list[NamedChange] = []
    groups: list[GroupChange] = []
    note: Annotated[str, doc("what this evidence is worth, and how to prove it")] = ""
