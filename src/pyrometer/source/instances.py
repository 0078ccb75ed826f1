"""What the instances of a file's classes have under the names of their attributes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.source.annotations import annotated
from pyrometer.source.value import HOST, LEAF, TENSOR, UNKNOWN, Kind, Value, join_all, plain

if TYPE_CHECKING:
    from pyrometer.source.flow import Flow

INITIALISERS = ("__init__", "setup", "reset", "build", "configure_model", "reset_parameters")


class Instances:
    """The attributes of instances, as far as their initialisers tell."""

    __slots__ = ("flow", "known")

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.known: dict[tuple[ast.ClassDef, str], Value] = {}

    def attribute(self, definition: ast.ClassDef, name: str) -> Value:
        """What an instance of a class of this file has under a name, as its initialiser leaves it."""
        key = (definition, name)
        if key not in self.known:
            self.known[key] = UNKNOWN
            self.known[key] = self.find_attribute(definition, name)
        return self.known[key]

    def find_attribute(self, definition: ast.ClassDef, name: str) -> Value:
        """Look at the assignments of the class and of its bases in this file."""
        for ancestor in self.flow.module.classes.lineage(definition):
            assigned = self.flow.module.classes.attribute_table(ancestor).get(name, ())
            first = [node for node, method in assigned if method is None or method.name in INITIALISERS]
            if not assigned:
                continue
            value = join_all(self.assigned_value(node) for node in first)
            if len(first) < len(assigned) and value.kind in {Kind.HOST, Kind.UNKNOWN}:
                return UNKNOWN  # A counter at first may be a tensor later.
            if len(first) < len(assigned) and value.device is not None:
                return Value(value.kind, of=value.of)  # A method may move it.
            return plain(value, graph=False)
        return HOST if name == "training" and self.flow.module.classes.is_module(definition) else UNKNOWN

    def assigned_value(self, node: ast.AST) -> Value:
        """The value of what is assigned: an expression, an annotation, or what is registered."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "register_buffer":
                return TENSOR
            if node.func.attr == "register_parameter":
                return LEAF
        if isinstance(node, ast.AnnAssign):
            said = annotated(self.flow.module, node.annotation)
            if said.kind is not Kind.UNKNOWN or node.value is None:
                return said
            return self.flow.value_of(node.value)
        return self.flow.value_of(node) if isinstance(node, ast.expr) else UNKNOWN
