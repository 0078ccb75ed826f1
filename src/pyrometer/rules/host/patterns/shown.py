"""Tensors that are turned into text, as source text shows them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyrometer.rules.host.patterns.reads import Read, read_of, receiver
from pyrometer.rules.rule import Module

LOG_METHODS = ("debug", "info", "warning", "error", "critical", "exception", "log")
LOGGER = re.compile(r"^_?(log|logger|logging|LOG|LOGGER|log_)$")
SHOWING = ("set_postfix", "add_scalar", "add_scalars", "log_metric")
"""Methods of progress bars and metric writers, which turn what they are given into numbers at once."""


def prints(module: Module) -> Iterator[Read]:
    """`print(t)`, `f"{t}"`, `str(t)`, `log.info("%s", t)`, `bar.set_postfix(loss=t)`."""
    for call in module.calls(
        "print", "str", "repr", "format", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics"
    ):
        yield from (read_of(module, call, node) for node in _shown(call))
    for call in module.method_calls(*LOG_METHODS):
        if _is_logger(module, call):
            yield from (read_of(module, call, node) for node in _shown(call))
    for call in module.method_calls(*SHOWING, "format"):
        yield from (read_of(module, call, node) for node in _shown(call))
    for text in module.nodes(ast.JoinedStr):
        for part in text.values:
            if isinstance(part, ast.FormattedValue):
                yield read_of(module, text, part.value)


def _shown(call: ast.Call) -> Iterator[ast.expr]:
    """Arguments that are turned into text, those within a dictionary too."""
    for arg in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(arg, ast.Dict):
            yield from arg.values
        elif isinstance(arg, ast.Starred | ast.JoinedStr | ast.Constant):
            continue
        elif (
            isinstance(arg, ast.BinOp) and isinstance(arg.op, ast.Mod) and isinstance(arg.left, ast.Constant)
        ):
            yield from arg.right.elts if isinstance(arg.right, ast.Tuple) else [arg.right]
        elif not _joins_text(arg):
            yield arg


def _joins_text(node: ast.expr) -> bool:
    """`"label: " + label`: what is added to a text is one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joins_text(node.left) or _joins_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_logger(module: Module, call: ast.Call) -> bool:
    owner = receiver(call)
    if isinstance(owner, ast.Attribute):
        return LOGGER.match(owner.attr) is not None
    return isinstance(owner, ast.Name) and (
        LOGGER.match(owner.id) is not None or module.name_of(owner) in {"logging", "loguru.logger"}
    )
