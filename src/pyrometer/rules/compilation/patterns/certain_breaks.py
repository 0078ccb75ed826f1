"""What the text of a compiled function shows to be a graph break for certain.

Each entry was compiled, and breaks whatever the inputs are. What torch learned to trace in some release, or traces under
conditions (assertions, `numpy`, random numbers of Python), is not here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from pyrometer.rules.compilation.patterns.compile_calls import compile_calls, mentions_compile
from pyrometer.rules.rule import Module

E = TypeVar("E", bound=ast.expr)

_OUTSIDE = "Do it outside of the compiled function."
_TELL = "Say it outside of the compiled function, or behind `if not torch.compiler.is_compiling():`."
_TIME = "Take the time around the call of the compiled function, after a synchronisation."
_NUMBER = (
    "Keep it a tensor of one element; or set torch._dynamo.config.capture_scalar_outputs = True where the number is only "
    "computed with."
)
_SELECT = "Select with torch.where, which computes both sides; or with torch.cond."
_SIZES = "Keep the size: multiply by the mask, or select with torch.where."
_LEFT_IN = "Remove the call."

FUNCTIONS = {
    "print": _TELL,
    "pprint.pprint": _TELL,
    "warnings.warn": _TELL,
    **{f"logging.{level}": _TELL for level in ("debug", "info", "warning", "error", "critical", "exception")},
    "open": _OUTSIDE,
    "breakpoint": _LEFT_IN,
    "exec": _OUTSIDE,
    "gc.collect": _OUTSIDE,
    "torch.save": _OUTSIDE,
    "torch.load": _OUTSIDE,
    "time.sleep": _OUTSIDE,
    **{
        f"time.{clock}{unit}": _TIME
        for clock in ("time", "perf_counter", "monotonic")
        for unit in ("", "_ns")
    },
    "torch.nonzero": _SIZES,
    "torch.masked_select": _SIZES,
    "torch.unique": _SIZES,
}
SIZED = ("nonzero", "masked_select", "unique")
"""Methods whose result has a size that depends on values."""

LEFT_IN = frozenset({"torch._dynamo.graph_break", "breakpoint"})
NUMBERS = frozenset({"float", "int", "bool"})

SCALARS = "torch._dynamo.config.capture_scalar_outputs"
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops"
"""Settings under which numbers, and such operators, become part of a graph."""


class CertainBreak(NamedTuple):
    """One place that ends a graph."""

    node: ast.expr
    what: str
    advice: str
    is_left_in: bool = False
    """A call that is a statement of its own and does nothing but break."""
    is_certain: bool = True
    """Whether every call of the function comes here."""
    is_aside: bool = False
    """It tells something to people or waits: under a condition that is mostly an error, or the first call."""


def certain_breaks(module: Module) -> Iterator[CertainBreak]:
    """The breaks of a file, in the order of the text, one per line at most."""
    if not module.imports_torch or not _compiles(module):
        return
    seen: set[int] = set()
    for candidate in sorted(
        _candidates(module), key=lambda graph_break: (graph_break.node.lineno, graph_break.node.col_offset)
    ):
        if _is_for_compiling(module, candidate.node):
            continue
        is_certain = not _is_conditional(module, candidate.node)
        if candidate.node.lineno not in seen and (is_certain or not candidate.is_aside):
            seen.add(candidate.node.lineno)
            yield candidate._replace(is_certain=is_certain)


def _is_for_compiling(module: Module, node: ast.expr) -> bool:
    """Whether a place runs under `if torch.compiler.is_compiling():` only, so that it was written for the compiler."""
    child: ast.AST = node
    for above in module.ancestors(node):
        asks = isinstance(above, ast.If) and isinstance(above.test, ast.Call) and child in above.body
        if asks and isinstance(above, ast.If) and "is_compiling" in module.source(above.test):
            return True
        child = above
    return False


def is_set(module: Module, setting: str) -> bool:
    """Whether a file gives a setting anything but False: an assignment, `config.patch(name=True)`, a variable of that name."""
    name = setting.rpartition(".")[2]
    if name.upper() in module.text:
        return True
    if name not in module.text:
        return False
    assigned = [
        assignment.value
        for assignment in module.nodes(ast.Assign)
        for target in assignment.targets
        if isinstance(target, ast.Attribute) and target.attr == name
    ]
    patched = [keyword.value for keyword in module.nodes(ast.keyword) if keyword.arg == name]
    return any(module.literal(value) is not False for value in (*assigned, *patched))


def _compiles(module: Module) -> bool:
    """Whether a file compiles, rather than only exports: exported code takes numbers out of tensors without a break."""
    if not mentions_compile(module):
        return False
    return "torch.export" not in module.text or next(compile_calls(module), None) is not None


def _candidates(module: Module) -> Iterator[CertainBreak]:
    """What breaks in the compiled parts of a file; values are only inferred there."""
    for call in _compiled(module, module.calls(*FUNCTIONS, *LEFT_IN)):
        name = module.name_of(call.func) or ""
        left_in = name in LEFT_IN and isinstance(module.parent(call), ast.Expr)
        aside = FUNCTIONS.get(name) in {_TELL, _OUTSIDE, _TIME}
        yield CertainBreak(
            call, f"{name}()", FUNCTIONS.get(name, _LEFT_IN), is_left_in=left_in, is_aside=aside
        )
    if not is_set(module, SCALARS):
        yield from _numbers(module)
    if not is_set(module, SHAPES):
        yield from _sizes(module)
    yield from _branches(module)


def _compiled(module: Module, nodes: Iterable[E]) -> Iterator[E]:
    """Those of some expressions that run in compiled code, and not seldom."""
    for node in nodes:
        region = module.region(node)
        if region.compiled and not region.scripted and not region.test and not module.is_rare(node):
            yield node


def _numbers(module: Module) -> Iterator[CertainBreak]:
    for call in _compiled(module, module.method_calls("item")):
        if isinstance(call.func, ast.Attribute) and module.value_of(call.func.value).is_tensor:
            yield CertainBreak(call, ".item()", _NUMBER)
    for call in _compiled(module, module.calls(*NUMBERS)):
        if len(call.args) == 1 and module.value_of(call.args[0]).is_tensor:
            yield CertainBreak(call, f"{module.name_of(call.func)}() of a tensor", _NUMBER)


def _sizes(module: Module) -> Iterator[CertainBreak]:
    for call in _compiled(module, module.method_calls(*SIZED)):
        if isinstance(call.func, ast.Attribute) and module.value_of(call.func.value).is_tensor:
            yield CertainBreak(call, f".{call.func.attr}()", _SIZES)
    masked = (item for item in module.nodes(ast.Subscript) if isinstance(item.slice, ast.Compare))
    for item in _compiled(module, masked):
        reads = isinstance(item.ctx, ast.Load)
        if reads and module.value_of(item.slice).is_tensor and module.value_of(item.value).is_tensor:
            yield CertainBreak(item, "Indexing with a mask", _SIZES)


def _branches(module: Module) -> Iterator[CertainBreak]:
    tests = [
        *(branch.test for branch in module.nodes(ast.If)),
        *(branch.test for branch in module.nodes(ast.While)),
        *(branch.test for branch in module.nodes(ast.IfExp)),
    ]
    for test in _compiled(module, tests):
        for part in _tested(test):
            if module.value_of(part).is_tensor:
                yield CertainBreak(part, "A branch on the values of a tensor", _SELECT)
                break


def _tested(test: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose truth a test asks for."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _tested(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _tested(test.operand)
    else:
        yield test


def _is_conditional(module: Module, node: ast.expr) -> bool:
    """Whether a branch of the function decides if it comes here."""
    child: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        if isinstance(above, ast.If | ast.IfExp | ast.While) and child is not above.test:
            return True
        if isinstance(above, ast.ExceptHandler | ast.BoolOp):
            return True
        child = above
    return False
