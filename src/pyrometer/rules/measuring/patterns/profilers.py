"""Blocks of code that run under torch's profiler."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.rule import Module

PROFILERS = ("torch.profiler.profile", "torch.autograd.profiler.profile", "torch.profiler.profiler.profile")


class ProfiledBlock(NamedTuple):
    """One `with torch.profiler.profile(...)`.

    Attributes:
        call: that makes the profiler.
        block: the statement that it is the context of.
        name: that it has within; `None` where it has none.
    """

    call: ast.Call
    block: ast.With | ast.AsyncWith
    name: str | None

    @property
    def open_ended(self) -> bool:
        """Whether it is given arguments that the text does not show."""
        return any(keyword.arg is None for keyword in self.call.keywords)

    def argument(self, name: str) -> ast.expr | None:
        """An argument by keyword."""
        return next((keyword.value for keyword in self.call.keywords if keyword.arg == name), None)

    def loops(self, module: Module) -> Iterator[ast.For | ast.While]:
        """The loops directly or deeper within, in the same function."""
        loops: list[ast.For | ast.While] = [*module.nodes(ast.For), *module.nodes(ast.While)]
        for loop in loops:
            if self.block in module.ancestors(loop) and module.function_of(loop) is module.function_of(
                self.block
            ):
                yield loop


def profiled_blocks(module: Module) -> Iterator[ProfiledBlock]:
    """Every block of a file that runs under the profiler."""
    for call in module.calls(*PROFILERS):
        item = module.parent(call)
        block = module.parent(item) if isinstance(item, ast.withitem) else None
        if isinstance(item, ast.withitem) and isinstance(block, ast.With | ast.AsyncWith):
            name = item.optional_vars.id if isinstance(item.optional_vars, ast.Name) else None
            yield ProfiledBlock(call, block, name)
