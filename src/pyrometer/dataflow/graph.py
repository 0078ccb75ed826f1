"""A few steps as a graph: operators, and the values that they read and write."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pyrometer.place import Place
from pyrometer.quantity import Ratio, Seconds


class Ref(NamedTuple):
    """Stands for a value among the arguments of a call."""

    value: int


@dataclass(slots=True)
class Value:
    """The content of a tensor between two writes.

    Attributes:
        number: its index in `FlowGraph.values`.
        storage: number of the memory that it lies in; views have that of their base.
        shape: sizes.
        layout: offset, sizes and strides in its memory.
        dtype: as torch spells it, without `torch.`.
        maker: the call that wrote it; `None` for what was there before.
        base: what was there before, where some of it is left; or what a view shows that no operator made.
        is_leaf: a leaf that wants gradients, such as a parameter.
        zero_share: share of zeros among its elements, by a sample where it is large; `None` where nobody looked.
        masked_share: share of places that it masks out, where it is the mask of an attention; `None` where nobody looked.
        is_one_hot: each row of a sample holds one element that is not zero, and that is 1.
        constant_tail: columns at the end that hold one value in all rows; `None` where nobody looked.
        columns: of how many these are.
        distinct: different values in it, where it is an index into a table.
        digest: of a sample of its bytes; `None` where none was taken.
        is_escaped: read by something that is no operator, or returned by the step.
        is_alive: still held after the last step, and not by a gradient that no optimizer takes.
    """

    number: int
    storage: int
    shape: tuple[int, ...]
    dtype: str
    maker: int | None = None
    base: int | None = None
    is_leaf: bool = False
    zero_share: Ratio | None = None
    masked_share: Ratio | None = None
    is_one_hot: bool = False
    constant_tail: int | None = None
    columns: int = 0
    distinct: int | None = None
    digest: int | None = None
    is_escaped: bool = False
    is_alive: bool = False
    layout: tuple[Any, ...] = ()

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(slots=True)
class Call:
    """One operator as it ran.

    Attributes:
        number: its index in `FlowGraph.calls`.
        step: number of the step, from 0.
        name: with its namespace and without its overload, such as `aten::mm`.
        arguments: with a `Ref` for each tensor; those given by name come last.
        reads: numbers of the values among its arguments, each once.
        writes: numbers of the values that it made, in the order of its results; written arguments among them.
        mutates: it writes to some of its arguments.
        where: the user's line; in the backward pass that of the forward operator.
        caller: the user's line that asked for the backward pass; `None` in the forward pass.
        kept: share of the rows that a loss does not ignore; `None` where nobody looked.
        backward: a gradient is computed.
        node: the autograd node that is being evaluated.
        forward: the call of the forward pass that this one belongs to.
        seconds: of the operator itself.
        optimizer: it ran within an optimizer's step.
    """

    number: int
    step: int
    name: str
    arguments: tuple[Any, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    where: Place
    mutates: bool = False
    backward: bool = False
    node: str | None = None
    forward: int | None = None
    seconds: Seconds = 0.0
    optimizer: bool = False
    caller: Place | None = None
    kept: Ratio | None = None

    def argument(self, position: int, otherwise: Any = None) -> Any:
        """An argument by its position; `otherwise` where it was left to its default."""
        return self.arguments[position] if position < len(self.arguments) else otherwise


@dataclass
class FlowGraph:
    """The operators of a few steps in order, and their values.

    Attributes:
        step_seconds: of all operators of each step.
        fed: what models were given: the number of the step, and of the value.
        answers: what models returned, alike.
        held: storages of parameters, buffers and other tensors of the modules that ran.
        complete: nothing was left out; else nothing can be said of what is never read.
        notes: what could not be followed.
    """

    calls: list[Call] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    step_seconds: list[Seconds] = field(default_factory=list)
    fed: list[tuple[int, int]] = field(default_factory=list)
    answers: list[tuple[int, int]] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    complete: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def num_steps(self) -> int:
        """Steps that were recorded."""
        return len(self.step_seconds)

    @cached_property
    def readers(self) -> list[list[int]]:
        """For each value the calls that read it, in order."""
        readers: list[list[int]] = [[] for _ in self.values]
        for call in self.calls:
            for value in call.reads:
                readers[value].append(call.number)
        return readers

    @cached_property
    def backward_of(self) -> dict[int, list[int]]:
        """The calls of the backward pass that belong to each forward one."""
        found: dict[int, list[int]] = {}
        for call in self.calls:
            if call.forward is not None:
                found.setdefault(call.forward, []).append(call.number)
        return found

    def is_view(self, call: Call) -> bool:
        """Whether a call only looks at memory in another way."""
        if call.mutates or not call.writes or not call.reads:
            return False
        first = self.values[call.reads[0]].storage
        return all(self.values[value].storage == first for value in call.writes)

    def share(self, seconds: Seconds) -> Ratio:
        """Of the operators' time of a step, on average over the recorded steps."""
        total = sum(self.step_seconds)
        return min(1.0, seconds / total) if total > 0 else 0.0
