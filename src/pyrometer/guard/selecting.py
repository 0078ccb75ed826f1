"""`-k`: which benchmarks to run, as pytest's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from pyrometer.errors import UsageError

_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")
_WORDS = frozenset({"and", "or", "not"})


def selector(expression: str | None) -> Callable[[str], bool]:
    """Whether a name is meant by words that it contains, joined by `and`, `or`, `not` and brackets; case does not count.

    Raises:
        UsageError: the expression cannot be read.

    >>> wanted = selector("forward and not (mode=default)")
    >>> wanted("perf_model.py::perf_forward[mode=eager]"), wanted("perf_model.py::perf_forward[mode=default]")
    (True, False)
    """
    if expression is None or not expression.strip():
        return lambda _name: True
    words = _TOKEN.findall(expression)

    def wanted(name: str) -> bool:
        said = " ".join(
            word if word in _WORDS or word in "()" else str(word.lower() in name.lower()) for word in words
        )
        return _truth(ast.parse(said, mode="eval").body)

    try:
        wanted("")
    except (SyntaxError, TypeError):
        raise UsageError(
            f"-k: {expression!r} cannot be read; write words joined by and, or, not, such as 'forward and not train'"
        ) from None
    return wanted


def _truth(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        parts = [_truth(part) for part in node.values]
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    raise TypeError(type(node).__name__)
