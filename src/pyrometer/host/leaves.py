"""What time is spent on: the kind and the name of what runs at an instruction, and of the libraries above it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyrometer.host.library_names import ALLOCATING, Library, kind_of_library, kind_of_name
from pyrometer.host.profile import LeafKind
from pyrometer.source.module import Module
from pyrometer.source.torch_names import METHODS
from pyrometer.source.value import Kind
from pyrometer.source.words import words


class Leaf(NamedTuple):
    """What time is spent on."""

    kind: LeafKind
    name: str


PYTHON = Leaf("python", "python")
GARBAGE = Leaf("garbage", "garbage collection")

_WAITING = frozenset(words("item tolist cpu numpy __bool__ __float__ __int__"))
"""Methods of a tensor that wait for its value."""

_METHODS: Mapping[str, LeafKind] = {
    "acquire": "lock",
    "backward": "backward",
    "write": "file",
    "writelines": "file",
    "flush": "file",
    "readline": "file",
    "readlines": "file",
    "fsync": "fsync",
    "fullmatch": "regex",
    "findall": "regex",
    "finditer": "regex",
    "subn": "regex",
}
"""Where nothing else is known of what they are called on."""

_TYPES: Sequence[tuple[str, LeafKind, str]] = (
    ("torch.nn.", "operator", "{shown}"),
    ("torch.optim.", "operator", "{shown}"),
    ("builtins.", "python", "{kind}.{method}"),
    ("_io.", "file", "file.{method}"),
)
"""By the beginning of a type's name: what its methods do, and what they are called."""

_BUILTIN_METHODS = frozenset(
    name for kind in (str, bytes, list, dict, set, tuple, int, float) for name in dir(kind)
)


class LeafReader:
    """Names what runs at places of one function.

    Args:
        module: the file; None where its text is not known.
        types: of what names were bound to while the function was watched.
    """

    def __init__(self, module: Module | None, types: Mapping[str, str]) -> None:
        self._module = module
        self._types = types

    def leaf(
        self,
        node: ast.AST | None,
        above: Sequence[Library] = (),
        *,
        operation: str = "",
        is_slow: bool = False,
    ) -> Leaf:
        """What an instruction spends time on.

        Args:
            node: what it carries out.
            above: frames of libraries that it called, innermost first.
            operation: its name.
            is_slow: it takes longer than Python's own instructions do.
        """
        turns = operation.startswith("FOR_ITER")
        node = _walked(node) if turns else node
        leaf = self._of_call(node) if isinstance(node, ast.Call) else PYTHON
        if operation.startswith("BEFORE_WITH") and isinstance(node, ast.expr):
            leaf = self._of_entering(node)
        elif leaf.kind == "python" and (turns or not isinstance(node, ast.Call)):
            leaf = self._of_operation(node, is_slow=is_slow, turns=turns)
        if not above:
            return leaf
        kind = kind_of_library(above)
        if kind in {"operator", "library"} and leaf.kind not in {"python", "library", "operator"}:
            kind = leaf.kind
        spoken = _spoken(above)
        sign = (
            _sign(node) if "<locals>" in spoken else spoken
        )  # what wraps an operator of a tensor tells nothing
        return Leaf(kind, leaf.name if isinstance(node, ast.Call) else sign)

    def _of_entering(self, context: ast.expr) -> Leaf:
        """What the beginning of a `with` block does: waiting for a lock, mostly."""
        kind = self._type_of(context)
        return Leaf(kind_of_name(kind) or "python", f"with {_shown(context)}") if kind else PYTHON

    def _of_call(self, call: ast.Call) -> Leaf:
        shown = _shown(call.func)
        dotted = None if self._module is None else self._module.name_of(call.func)
        if dotted is not None:
            kind = kind_of_name(dotted)
            return Leaf(kind or "python", dotted)
        if isinstance(call.func, ast.Attribute):
            return self._of_method(call.func, shown)
        kind = "operator" if self._type_of(call.func).startswith("torch.nn.") else "python"
        return Leaf(kind, shown)

    def _of_method(self, function: ast.Attribute, shown: str) -> Leaf:
        method, kind = function.attr, self._type_of(function.value)
        if kind == "torch.Tensor" or (not kind and self._is_tensor(function.value)):
            return Leaf(_of_tensor_method(method), f"Tensor.{method}")
        for prefix, meant, told in _TYPES:
            if kind.startswith(prefix):
                return Leaf(
                    meant, told.format(method=method, kind=kind.removeprefix("builtins."), shown=shown)
                )
        made = kind_of_name(self._dotted(function.value))
        if made not in {None, "operator", "allocation", "python"}:
            return Leaf(made, shown)
        known = kind_of_name(kind) if kind else None
        if known is not None:
            return Leaf(known, f"{kind.rpartition('.')[2]}.{method}")
        return Leaf(self._of_unknown_method(method), shown)

    def _dotted(self, expression: ast.expr) -> str:
        """The function that made what a method is called on; empty where it is not known."""
        if self._module is None or not isinstance(expression, ast.Call):
            return ""
        return self._module.name_of(expression.func) or ""

    def _of_unknown_method(self, method: str) -> LeafKind:
        if method in _METHODS:
            return _METHODS[method]
        if self._module is None or not self._module.imports_torch:
            return "python"
        if method in _WAITING:
            return "synchronisation"
        in_place = method.endswith("_") and method.removesuffix("_") in METHODS
        is_tensors = in_place or (method in METHODS and method not in _BUILTIN_METHODS)
        return _of_tensor_method(method) if is_tensors else "python"

    def _of_operation(self, node: ast.AST | None, *, is_slow: bool, turns: bool) -> Leaf:
        operands = [node] if turns and isinstance(node, ast.expr) else _operands(node)
        kinds = {self._type_of(operand) for operand in operands}
        if "torch.Tensor" in kinds or any(self._is_tensor(operand) for operand in operands):
            return Leaf("operator", _sign(node))
        if kinds & {"numpy.ndarray", "numpy.generic"} or any(self._is_array(operand) for operand in operands):
            return Leaf("numpy", _sign(node))
        if (
            is_slow
            and operands
            and self._module is not None
            and self._module.imports_torch
            and not kinds - {""}
        ):
            return Leaf("operator", _sign(node))
        if isinstance(node, ast.Import | ast.ImportFrom):
            return Leaf("import", "import")
        return PYTHON

    def _type_of(self, expression: ast.expr) -> str:
        """The type that was seen, of names and of attributes of `self`; empty where none was."""
        if isinstance(expression, ast.Name):
            return self._types.get(expression.id, "")
        if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
            return self._types.get(f"{expression.value.id}.{expression.attr}", "")
        if isinstance(expression, ast.Constant):
            return f"builtins.{type(expression.value).__name__}"
        return ""

    def _is_tensor(self, expression: ast.expr) -> bool:
        return self._kind_of(expression) is Kind.TENSOR

    def _is_array(self, expression: ast.expr) -> bool:
        return self._kind_of(expression) is Kind.ARRAY

    def _kind_of(self, expression: ast.expr) -> Kind:
        if isinstance(expression, ast.BinOp | ast.Subscript | ast.UnaryOp):
            operands = _operands(expression)
            if any(self._type_of(operand) == "torch.Tensor" for operand in operands):
                return Kind.TENSOR
        return Kind.UNKNOWN if self._module is None else self._module.value_of(expression).kind


def _of_tensor_method(method: str) -> LeafKind:
    if method in _WAITING:
        return "synchronisation"
    if method == "backward":
        return "backward"
    return "allocation" if method in ALLOCATING else "operator"


def _spoken(frames: Sequence[Library]) -> str:
    """The outermost function that is no wrapper of another."""
    names = [frame.function for frame in reversed(frames)]
    if "/torch/optim/" in frames[-1].file:
        return "optimizer step"
    if any(frame.file.endswith("/torch/_tensor_str.py") for frame in frames):
        return "text of a tensor"
    return next((name for name in names if "<locals>" not in name and "._" not in name), names[0])


def _walked(loop: ast.AST | None) -> ast.AST | None:
    """What a loop or comprehension walks over."""
    if isinstance(loop, ast.For | ast.AsyncFor):
        return loop.iter
    generators: list[ast.comprehension] = getattr(loop, "generators", [])
    return generators[0].iter if generators else loop


def _operands(node: ast.AST | None) -> list[ast.expr]:
    """What an operation works on; the left first."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        return [node.value]
    return [node.value] if isinstance(node, ast.Attribute) else []


_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip


def _sign(node: ast.AST | None) -> str:
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return _SIGNS.get(type(node.op), "operator")
    if isinstance(node, ast.Subscript):
        return "[]"
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return "comparison" if isinstance(node, ast.Compare) else "iteration"


def _shown(function: ast.expr) -> str:
    text = ast.unparse(function)
    return text if len(text) <= 40 else f"….{text.rpartition('.')[2][:40]}"
