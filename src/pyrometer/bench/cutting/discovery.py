"""Which of the user's functions a step calls, and what it spends in them."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from torch import nn

from pyrometer.source.ownership import owner_of

_NOT_REPLACED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DRIVING = {"backward", "grad", "step", "zero_grad"}
_DRIVEN_FROM = ("torch/_tensor.py", "torch/autograd/__init__.py", "torch/optim/")


@dataclass
class CalledCode:
    """A function of the user's, as a step calls it; nested calls of itself count once.

    Attributes:
        scope: the global names of its file.
        num_calls: in the step.
        inside: nanoseconds that it spends in other functions of the user's.
        fixed: why it cannot be left out.
    """

    code: CodeType
    scope: dict[str, Any]
    num_calls: int = 0
    total_ns: int = 0
    inside: dict[CodeType, int] = field(default_factory=dict)
    fixed: str | None = None
    depth: int = 0


class CallProfile:
    """Watches the calls of a step through `sys.setprofile`; there must be no other profiler.

    Attributes:
        codes: the user's functions that were called.
        total_ns: of the step.
    """

    def __init__(self, model: nn.Module | None) -> None:
        self.codes: dict[CodeType, CalledCode] = {}
        self.total_ns = 0
        self._model = model
        self._kinds: dict[CodeType, str] = {}
        self._stack: list[tuple[CalledCode, int]] = []

    def run(self, step: Callable[[], Any]) -> None:
        """Run a step and watch it."""
        handle = self._model.register_forward_pre_hook(self._at_model) if self._model is not None else None
        start = time.perf_counter_ns()
        sys.setprofile(self._on_event)
        try:
            step()
        finally:
            sys.setprofile(None)
            if handle is not None:
                handle.remove()
        self.total_ns = time.perf_counter_ns() - start

    def _at_model(self, *_: Any) -> None:
        self._fix("it calls the whole model")

    def _fix(self, why: str) -> None:
        for called, _ in self._stack:
            called.fixed = called.fixed or why

    def _on_event(self, frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        kind = self._kinds.get(code)
        if kind is None:
            kind = self._kinds[code] = self._kind_of(code)
        if kind == "other" or event not in {"call", "return"}:
            return
        if kind == "driving":
            self._fix("it drives the training")
        elif event == "call":
            self._enter(code, frame)
        else:
            self._leave(code)

    def _enter(self, code: CodeType, frame: FrameType) -> None:
        called = self.codes.get(code)
        if called is None:
            called = self.codes[code] = CalledCode(
                code, frame.f_globals, fixed=self._fixed_from_the_start(code)
            )
        called.num_calls += not called.depth
        called.depth += 1
        self._stack.append((called, time.perf_counter_ns()))

    def _leave(self, code: CodeType) -> None:
        if not self._stack or self._stack[-1][0].code is not code:
            return
        called, start = self._stack.pop()
        called.depth -= 1
        if called.depth:
            return
        spent = time.perf_counter_ns() - start
        called.total_ns += spent
        for around in {id(around): around for around, _ in self._stack}.values():
            around.inside[code] = around.inside.get(code, 0) + spent

    def _fixed_from_the_start(self, code: CodeType) -> str | None:
        if code.co_flags & _NOT_REPLACED:
            return "it is a generator"
        if code.co_name.startswith("__") and code.co_name not in {"__call__", "__getitem__"}:
            return "Python calls it itself"
        forward = getattr(type(self._model), "forward", None)
        return "it is the whole model" if getattr(forward, "__code__", None) is code else None

    @staticmethod
    def _kind_of(code: CodeType) -> str:
        if code.co_name in _DRIVING and any(part in code.co_filename for part in _DRIVEN_FROM):
            return "driving"
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return "other"  # modules, classes and comprehensions
        return "user" if owner_of(code.co_filename, code.co_name) == "user" else "other"
