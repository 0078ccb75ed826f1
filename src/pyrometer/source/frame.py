"""The state of one pass over a function: what each name is at this point, and what was learnt from uses."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.source.value import (
    CONTAINER,
    EMPTY,
    TENSOR,
    Device,
    Kind,
    Value,
    bounded,
    element_of,
    join,
)

if TYPE_CHECKING:
    from pyrometer.source.flow import Flow

Env = dict[str, Value]


class Frame:
    """One pass over the statements of a function, or of a file's top level."""

    __slots__ = (
        "claims",
        "continues",
        "env",
        "ever",
        "exits",
        "flow",
        "found",
        "grad_off",
        "quiet",
        "returns",
        "scope",
    )

    def __init__(
        self, flow: Flow, scope: ast.AST, claims: dict[ast.AST, Value], *, quiet: bool = False
    ) -> None:
        self.flow = flow
        self.scope = scope
        self.env: Env | None = {}
        """None where no path leads to."""
        self.ever: Env = {}
        """Each name's value over all its assignments: what closures see."""
        self.claims = claims
        """What earlier passes learnt from uses, by the node that binds the name."""
        self.found: dict[ast.AST, Value] = {}
        """What this pass learns."""
        self.grad_off = 0
        """Blocks around in which no graph is built."""
        self.returns: list[Value] = []
        self.exits: list[list[Env]] = []
        """For each loop around, the names at each of its `break`s."""
        self.continues: list[list[Env]] = []
        self.quiet = quiet
        """Nothing is noted for rules: the function is only passed over for what it returns."""

    def bind(self, name: str, value: Value, binder: ast.AST) -> None:
        """Give a name a value, or what its uses say that it must be."""
        if is_open(value):
            value = claimed(value, self.claims.get(binder))
            if is_open(value) and binder not in value.origins:
                origins = (*value.origins, binder)
                value = Value(value.kind, False, value.device, None, value.items, value.element, origins)
        if self.env is not None:
            self.env[name] = value
        known = self.ever.get(name)
        self.ever[name] = value if known is None else join(known, value)

    def claim(self, value: Value, must_be: Value = TENSOR) -> None:
        """Learn from a use what the names that a value came from must hold."""
        if not is_open(value) or (value.is_tensor and not must_be.graph):
            return
        for origin in value.origins:
            known = self.found.get(origin)
            if known is None or (must_be.graph and not known.graph):
                self.found[origin] = must_be

    def fill(self, container: ast.expr, value: Value) -> None:
        """Something is put into a container: an empty one holds such values from here on."""
        if not isinstance(container, ast.Name) or self.env is None:
            return
        known = self.env.get(container.id)
        if known == EMPTY and value.kind in {Kind.TENSOR, Kind.TENSORS}:
            element = bounded(value) if value.kind is Kind.TENSORS else None
            self.env[container.id] = Value(Kind.TENSORS, value.graph, value.device, element=element)
        elif known is not None and known.kind is Kind.TENSORS:
            same = value.kind in {Kind.TENSOR, Kind.TENSORS}
            element = (
                None if value.is_tensor and known.element is None else join(element_of(known), bounded(value))
            )
            graph = known.graph or value.graph
            self.env[container.id] = Value(Kind.TENSORS, graph, element=element) if same else CONTAINER
        elif known is not None and known.kind is Kind.CONTAINER:
            self.env[container.id] = CONTAINER

    def tensor(self, *inputs: Value, device: Device | None = None) -> Value:
        """The result of a differentiable operation on these."""
        graph = not self.grad_off and any(value.differentiable for value in inputs)
        if device is None:
            places = {value.device for value in inputs if value.is_tensor}
            device = places.pop() if len(places) == 1 else None
        return Value(Kind.TENSOR, graph, device) if graph or device else TENSOR

    def fork(self) -> Env | None:
        """A copy of the names for a branch."""
        return None if self.env is None else dict(self.env)

    @contextlib.contextmanager
    def inner_names(self) -> Iterator[None]:
        """Names that are bound in here are gone afterwards, as those of comprehensions and lambdas."""
        outer, ever = self.fork(), dict(self.ever)
        yield
        self.env, self.ever = outer, ever


def is_open(value: Value) -> bool:
    """Whether uses may say more about a value than is known."""
    return (value.kind is Kind.UNKNOWN or (value.is_tensor and not value.graph)) and value.of is None


def claimed(value: Value, claim: Value | None) -> Value:
    """A value as its uses say that it must be."""
    if claim is None:
        return value
    if claim.is_tensor:
        return Value(Kind.TENSOR, claim.graph, value.device)
    return claim if value.kind is Kind.UNKNOWN else value


def merge(first: Env | None, second: Env | None) -> Env | None:
    """The names after two branches meet.

    A name that only one branch binds has that value: on the other path its use would fail.
    """
    if first is None or second is None:
        return second if first is None else first
    merged = {**second, **first}
    for name, value in first.items():
        other = second.get(name)
        if other is not None and other is not value:
            merged[name] = join(value, other)
    return merged
