"""What an annotation says that a value is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.source.index import last_name
from pyrometer.source.knowledge import ANNOTATIONS, HOLDERS, instance_of
from pyrometer.source.value import CONTAINER, NONE, TENSOR, TENSORS, UNKNOWN, Kind, Value, join

if TYPE_CHECKING:
    from pyrometer.source.module import Module

DEEPEST = 6


def annotated(module: Module, annotation: ast.expr | None, depth: int = 0) -> Value:
    """The value that an annotation promises; UNKNOWN where it promises nothing that rules tell apart."""
    if annotation is None or depth > DEEPEST:
        return UNKNOWN
    if isinstance(annotation, ast.Constant):
        return quoted(module, annotation)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return join(
            annotated(module, annotation.left, depth + 1), annotated(module, annotation.right, depth + 1)
        )
    if isinstance(annotation, ast.Subscript):
        return generic(module, annotation, depth)
    return named(module, annotation)


def named(module: Module, annotation: ast.expr) -> Value:
    """A class by name."""
    local = module.classes.local_class(annotation)
    if local is not None:
        return module.classes.instance(local)
    dotted = module.name_of(annotation)
    if dotted is None:
        return UNKNOWN
    if dotted in ANNOTATIONS:
        return ANNOTATIONS[dotted]
    if dotted.startswith(".") and last_name(annotation) == "Tensor":
        return TENSOR
    known = instance_of(dotted)
    return known if known.kind is not Kind.TENSOR else UNKNOWN


def quoted(module: Module, annotation: ast.Constant) -> Value:
    """None, or an annotation in quotes."""
    if annotation.value is None:
        return NONE
    if not isinstance(annotation.value, str):
        return UNKNOWN
    text = annotation.value.strip().replace(" ", "")
    if text in ("torch.Tensor", "Tensor", "Optional[Tensor]", "Optional[torch.Tensor]", "torch.Tensor|None"):
        return TENSOR
    for definition in module.nodes(ast.ClassDef):
        if definition.name == text:
            return module.classes.instance(definition)
    return UNKNOWN


def generic(module: Module, annotation: ast.Subscript, depth: int) -> Value:
    """`Optional[T]`, `list[T]` and their like."""
    name = module.name_of(annotation.value)
    arguments = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if not arguments:
        return CONTAINER  # tuple[()]
    if name in ("typing.Optional", "typing.Union"):
        value = annotated(module, arguments[0], depth + 1)
        for argument in arguments[1:]:
            value = join(value, annotated(module, argument, depth + 1))
        return value
    if name in ("typing.Annotated", "typing.Final", "typing.ClassVar"):
        return annotated(module, arguments[0], depth + 1)
    if name in HOLDERS:
        parts = [annotated(module, part, depth + 1) for part in arguments]
        if name in ("tuple", "typing.Tuple") and not is_ellipsis(arguments[-1]):
            kind = Kind.TENSORS if any(part.is_tensor for part in parts) else Kind.CONTAINER
            return Value(kind, items=tuple(parts))
        last = parts[-1] if not is_ellipsis(arguments[-1]) else parts[0]
        return TENSORS if last.kind in (Kind.TENSOR, Kind.TENSORS) else CONTAINER
    return named(module, annotation.value) if name else UNKNOWN


def is_ellipsis(expression: ast.expr) -> bool:
    """Whether it is the `...` of `tuple[T, ...]`."""
    return isinstance(expression, ast.Constant) and expression.value is ...
