"""One call with the values of its arguments, as those look at it who say what it returns."""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING

from pyrometer.source.frame import Frame
from pyrometer.source.value import UNKNOWN, Device, Value

if TYPE_CHECKING:
    from pyrometer.source.module import Module

ACCELERATORS = frozenset(["cuda", "mps", "xpu", "hpu", "npu", "xla", "mtia"])


@dataclasses.dataclass(slots=True)
class Called:
    """A call within a pass over a function."""

    frame: Frame
    node: ast.Call
    arguments: list[Value]
    keywords: dict[str | None, Value]

    @property
    def module(self) -> Module:
        """The file."""
        return self.frame.flow.module

    @property
    def inputs(self) -> list[Value]:
        """All arguments."""
        return [*self.arguments, *self.keywords.values()]

    @property
    def first(self) -> Value:
        """The first positional argument."""
        return self.arguments[0] if self.arguments else UNKNOWN

    def said(self, keyword: str) -> object:
        """The constant that a keyword is given."""
        return self.module.literal(self.module.keyword(self.node, keyword))

    def claim_first(self) -> None:
        """The first argument must be a tensor."""
        if self.arguments:
            self.frame.claim(self.arguments[0])

    def device(self) -> Device | None:
        """The device that the keyword names."""
        expression = self.module.keyword(self.node, "device")
        return None if expression is None else self.device_named(expression)

    def device_named(self, expression: ast.expr) -> Device | None:
        """The device behind "cpu", "cuda:0" or torch.device("cuda")."""
        if isinstance(expression, ast.Call) and self.module.name_of(expression.func) == "torch.device":
            if not expression.args:
                return None
            expression = expression.args[0]
        text = self.module.literal(expression)
        if not isinstance(text, str):
            return None
        name = text.partition(":")[0]
        if name == "cpu":
            return "cpu"
        return "accelerator" if name in ACCELERATORS else None
