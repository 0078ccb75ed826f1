"""Loops over time that call a recurrent cell, for which torch has a layer that goes over all of it in one call."""

from __future__ import annotations

import ast

from pyrometer.rules.rule import Module

LAYERS = {"torch.nn.LSTMCell": "nn.LSTM", "torch.nn.GRUCell": "nn.GRU", "torch.nn.RNNCell": "nn.RNN"}

OVER_TIME = (
    "Give the whole sequence to `{layer}`, which goes over it in one call and multiplies all inputs at once; it takes the weights of the cell, as "
    "`weight_ih_l0` and so on. What each round does beside the cell comes after it, for all steps at once."
)


def layer_for(module: Module, loop: ast.AST) -> str | None:
    """The layer that does what the cells that a loop calls do in its rounds; nothing where the first is fed what a round makes."""
    cells = {
        ast.unparse(target): LAYERS[name]
        for name in LAYERS
        for call in module.calls(name)
        for target in getattr(module.statement_of(call), "targets", [])
    }
    if not cells or not isinstance(loop, ast.For):
        return None
    made = _stored(loop) - _stored(loop.target)
    calls = [
        node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.Call) and node.args
    ]
    first = next((call for call in calls if ast.unparse(call.func) in cells), None)
    if first is None or made & {node.id for node in ast.walk(first.args[0]) if isinstance(node, ast.Name)}:
        return None
    return cells[ast.unparse(first.func)]


def _stored(node: ast.AST) -> set[str]:
    return {
        name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
