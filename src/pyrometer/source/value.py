"""What an expression is, as far as the text of a file tells."""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Iterable, Sequence
from typing import Final, Literal

Device = Literal["cpu", "accelerator"]


class Kind(enum.Enum):
    """The kinds of object that rules tell apart."""

    __hash__ = object.__hash__  # Of each there is one: that of Enum, which hashes the name, costs a call.

    TENSOR = "tensor"
    TENSORS = "tensors"
    """A list, tuple or dict of tensors, or an object with tensors in its fields."""
    MODULE = "module"
    """An instance of nn.Module."""
    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    """A GradScaler."""
    LOADER = "loader"
    """A DataLoader, or what iterates like one."""
    DATASET = "dataset"
    ARRAY = "array"
    """Of numpy."""
    HOST = "host"
    """An int, float, str, bool, None, a shape, a dtype, a device."""
    CONTAINER = "container"
    """A list, dict, set or deque of which the contents are no tensors, or not known."""
    UNKNOWN = "unknown"


PARAMETER: Final = "parameter"
BATCH: Final = "batch"

DEEPEST_ITEMS = 2
MOST_ITEMS = 16
"""Of larger or deeper containers the parts are not kept."""

MOST_ORIGINS = 4
"""Places where a value may come from that are kept after branches meet."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """What an expression is at one point of the program; whatever is not certain is UNKNOWN, False or None.

    >>> Value(Kind.TENSOR, graph=True).is_tensor
    True
    """

    kind: Kind
    graph: bool = False
    """It may carry an autograd graph: the result of a module or of operations on parameters, not detached."""
    device: Device | None = None
    of: ast.AST | str | None = None
    """Its class: one of this file, or a dotted name. Of tensors "parameter" for leaves, "batch" for a loader's."""
    items: tuple[Value, ...] | None = None
    """The parts of a tuple or list, where each is known."""
    element: Value | None = None
    """What iterating yields, where all are alike."""
    origins: tuple[ast.AST, ...] = dataclasses.field(default=(), compare=False, repr=False)
    """The names that it was bound to unchanged, so that later uses of it can say what they must be."""

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor."""
        return self.kind is Kind.TENSOR

    @property
    def differentiable(self) -> bool:
        """Whether operations on it build a graph: it carries one, or it is a parameter."""
        return self.graph or self.of == PARAMETER


UNKNOWN: Final = Value(Kind.UNKNOWN)
HOST: Final = Value(Kind.HOST)
NONE: Final = Value(Kind.HOST, of="None")
CONTAINER: Final = Value(Kind.CONTAINER)
EMPTY: Final = Value(Kind.CONTAINER, items=())
"""A list or dict without contents, so far."""
ARRAY: Final = Value(Kind.ARRAY)
TENSOR: Final = Value(Kind.TENSOR)
GRAPH_TENSOR: Final = Value(Kind.TENSOR, graph=True)
LEAF: Final = Value(Kind.TENSOR, of=PARAMETER)
TENSORS: Final = Value(Kind.TENSORS)
MODULE: Final = Value(Kind.MODULE)
LOADER: Final = Value(Kind.LOADER)
LOADED: Final = Value(Kind.TENSORS, device="cpu", of=BATCH)
"""A batch as a loader yields it."""


def plain(value: Value, *, graph: bool) -> Value:
    """The same value with or without a graph, free of where it came from."""
    if value.graph == graph and not value.origins:
        return value
    return Value(value.kind, graph, value.device, value.of, value.items, value.element)


def join(first: Value, second: Value) -> Value:
    """What is certain of a value that is one of two, as after the branches of an `if`.

    None beside something else is an optional something; where the kinds differ, nothing is certain.

    >>> join(Value(Kind.TENSOR, graph=True), Value(Kind.TENSOR)).graph
    True
    >>> join(TENSOR, HOST).kind
    <Kind.UNKNOWN: 'unknown'>
    """
    if first is second or second == NONE:
        return first
    if first == NONE:
        return second
    if first.kind is not second.kind:
        return join_kinds(first, second)
    origins = first.origins
    if origins != second.origins:
        origins = tuple(dict.fromkeys(origins + second.origins))[:MOST_ORIGINS]
    if first == second and first.origins == origins:
        return first
    return Value(
        first.kind,
        graph=first.graph or second.graph,
        device=first.device if first.device == second.device else None,
        of=first.of if first.of == second.of else None,
        items=join_items(first.items, second.items),
        element=None
        if first.element is None or second.element is None
        else join(first.element, second.element),
        origins=origins,
    )


def join_kinds(first: Value, second: Value) -> Value:
    """One of two values of different kinds: an empty list that something fills with tensors, or nothing certain."""
    if first == EMPTY and second.kind is Kind.TENSORS:
        return second
    if second == EMPTY and first.kind is Kind.TENSORS:
        return first
    return UNKNOWN


def join_all(values: Iterable[Value]) -> Value:
    """What is certain of one of several; UNKNOWN of none at all."""
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
    return UNKNOWN if joined is None else joined


def join_items(first: tuple[Value, ...] | None, second: tuple[Value, ...] | None) -> tuple[Value, ...] | None:
    """The parts of one of two containers, where they have as many."""
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(join(one, other) for one, other in zip(first, second, strict=True))


def holding(parts: Sequence[Value], *, exact: bool = True) -> Value:
    """A container of these parts; `exact` where it has just as many.

    >>> holding([TENSOR, TENSOR]).kind, holding([TENSOR, HOST]).kind
    (<Kind.TENSORS: 'tensors'>, <Kind.CONTAINER: 'container'>)
    """
    if not parts:
        return EMPTY
    items = tuple(parts) if exact and is_shallow(parts) else None
    if all(part.kind in {Kind.TENSOR, Kind.TENSORS} for part in parts):
        return Value(Kind.TENSORS, any(part.graph for part in parts), items=items)
    return Value(Kind.CONTAINER, items=items)


def is_shallow(parts: Sequence[Value]) -> bool:
    """Whether a container of these parts is small enough to keep them: they must not grow without end in a loop."""
    return len(parts) <= MOST_ITEMS and all(depth_of(part) < DEEPEST_ITEMS for part in parts)


def depth_of(value: Value) -> int:
    """Containers within containers whose parts are known."""
    within = [*(value.items or ()), *([value.element] if value.element is not None else [])]
    return 1 + max(map(depth_of, within)) if within else 0


def yielding(element: Value) -> Value:
    """Something that yields such elements when it is iterated."""
    if element.kind in {Kind.TENSOR, Kind.TENSORS}:
        return Value(Kind.TENSORS, element.graph, element.device, element=bounded(element))
    return Value(Kind.CONTAINER, element=bounded(element))


def bounded(element: Value) -> Value:
    """The element without its parts, where they go too deep."""
    if depth_of(element) < DEEPEST_ITEMS:
        return element
    return Value(element.kind, element.graph, element.device, element.of)


def element_of(value: Value) -> Value:
    """What iterating over a value yields.

    >>> element_of(Value(Kind.LOADER)).kind
    <Kind.TENSORS: 'tensors'>
    """
    if value.element is not None:
        return value.element
    if value.kind is Kind.LOADER:
        return LOADED
    if value.items:
        return join_all(value.items)
    if value.kind in {Kind.TENSOR, Kind.TENSORS}:
        return Value(Kind.TENSOR, value.graph, value.device)
    if value.kind is Kind.MODULE:
        return UNKNOWN if isinstance(value.of, ast.ClassDef) else MODULE
    return HOST if value.kind is Kind.HOST else UNKNOWN
