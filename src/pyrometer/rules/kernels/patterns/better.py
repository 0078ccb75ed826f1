"""A better way to write an expression, and its text."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pyrometer.rules.rule import Module


class Better(NamedTuple):
    """One place, and what to write there."""

    node: ast.expr
    text: str
    """What to write in its place; empty where the file does not say enough for that."""


def bracketed(module: Module, node: ast.expr) -> str:
    """The text of an operand, in brackets where it is not one word."""
    text = module.source(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"
