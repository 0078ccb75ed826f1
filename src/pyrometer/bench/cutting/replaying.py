"""Handing out what a place returned before, instead of calling it; gradients pass by it."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from pyrometer.bench.cutting.recording import Call
from pyrometer.bench.cutting.values import Maker, leaves_of, maker_of
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds

GRADIENT = 1e-3
"""Of all that passes by a place that was cut out: small, and not so small that a sum of it is denormal."""


class ReplayError(PyrometerError):
    """A step went another way while one of its places was cut out."""


class Replayer:
    """Hands out results in the order in which they were recorded; of the thread that steps."""

    def __init__(self, calls: list[Call], *, trained: bool = False) -> None:
        """With `trained`, the parameters of the module that a call belongs to get gradients, so that they are still updated."""
        self._replies = [Reply(call, trained=trained) for call in calls]
        self._next = 0
        self._stepping: int | None = None
        self._spent_ns: list[int] = []

    @property
    def spent_s(self) -> Seconds:
        """What handing out takes in a step, the median."""
        return statistics.median(self._spent_ns) * 1e-9 if self._spent_ns else 0.0

    def begin(self) -> None:
        """A step begins in this thread."""
        self._next = 0
        self._spent_ns.append(0)
        self._stepping = threading.get_ident()

    def end(self) -> None:
        """The step is over; or it raised."""
        self._stepping = None

    def require_all(self) -> None:
        """Refuse a step that asked for other results than were recorded.

        Raises:
            ReplayError: it called the place more or less often.
        """
        if self._next != len(self._replies):
            raise ReplayError(f"it was called {self._next} times instead of {len(self._replies)}")

    def watch(self) -> None:
        """In the next step hand out copies, so that the results can be told that the program writes to."""
        for reply in self._replies:
            reply.watch()

    def settle(self) -> None:
        """From now on only what the program wrote to is copied."""
        for reply in self._replies:
            reply.settle()

    def __call__(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What it returned when it was called for the same time in a step.

        Raises:
            ReplayError: it is called more often than before.
        """
        if self._stepping != threading.get_ident():
            return original(*args, **kwargs)
        start = time.perf_counter_ns()
        number, self._next = self._next, self._next + 1
        if number >= len(self._replies):
            raise ReplayError(f"it was called more than {len(self._replies)} times")
        result = self._replies[number](args, kwargs)
        self._spent_ns[-1] += time.perf_counter_ns() - start
        return result


class Reply:
    """What one call returned, to be handed out again and again."""

    def __init__(self, call: Call, *, trained: bool) -> None:
        self._results: list[_Result] = []
        self._attached: list[_Result] = []
        self._handed: tuple[torch.Tensor, ...] = ()
        self._gradients: list[torch.Tensor] | None = None
        self._anchor = torch.zeros((), requires_grad=True)
        self._make = maker_of(call.value, self._maker_of_leaf)
        self._trained = _trained_by(call.owner) if trained and self._attached else []

    def _maker_of_leaf(self, leaf: Any) -> Maker:
        if isinstance(leaf, np.ndarray):
            return leaf.copy
        if not isinstance(leaf, torch.Tensor):
            return lambda: leaf
        result = _Result(leaf.detach())
        self._results.append(result)
        if not leaf.requires_grad:
            return result.hand_out
        number = len(self._attached)
        self._attached.append(result)
        return lambda: self._handed[number]

    def watch(self) -> None:
        """Hand out copies and remember them."""
        for result in self._results:
            result.watched = []

    def settle(self) -> None:
        """Copy only what was written to since `watch`."""
        for result in self._results:
            result.settle()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results; those with gradients hang on the arguments that have some."""
        if self._attached:
            inputs = [
                leaf
                for leaf in leaves_of((args, kwargs))
                if isinstance(leaf, torch.Tensor) and leaf.requires_grad
            ]
            self._handed = _PassingBy.apply(self, self._anchor, *inputs)  # type: ignore[no-untyped-call]
            for parameter, gradient in self._trained:
                if parameter.grad is None:
                    parameter.grad = gradient
        return self._make()

    def hand_out(self) -> tuple[torch.Tensor, ...]:
        """The results that have gradients."""
        return tuple(result.hand_out() for result in self._attached)

    def gradients_like(self, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        """Some gradient for each input, made once."""
        if self._gradients is None:
            self._gradients = [torch.full_like(tensor, GRADIENT) for tensor in inputs]
        return self._gradients


class _Result:
    """A tensor to hand out, shared as long as nobody writes to it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._written = False
        self.watched: list[torch.Tensor] | None = None

    def hand_out(self) -> torch.Tensor:
        if self.watched is None and not self._written:
            return self._tensor.detach()
        copy = self._tensor.clone()  # not a view, to which autograd lets nobody write
        if self.watched is not None:
            self.watched.append(copy.detach())
        return copy

    def settle(self) -> None:
        self._written = any(not torch.equal(copy, self._tensor) for copy in self.watched or ())
        self.watched = None


class _PassingBy(torch.autograd.Function):
    """Results that hang on the inputs, and send them gradients without any computation."""

    @staticmethod
    def forward(
        ctx: Any, reply: Reply, _anchor: torch.Tensor, *inputs: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The results."""
        ctx.gradients = reply.gradients_like(inputs)
        return reply.hand_out()

    @staticmethod
    def backward(ctx: Any, *_: Any) -> tuple[Any, ...]:
        """The gradients of the inputs."""
        return (None, None, *ctx.gradients)


def _trained_by(owner: Any) -> list[tuple[nn.Parameter, torch.Tensor]]:
    """The parameters of a module that are trained densely, each with some gradient."""
    if not isinstance(owner, nn.Module) or any(getattr(part, "sparse", False) for part in owner.modules()):
        return []
    return [
        (parameter, torch.full_like(parameter.detach(), GRADIENT))
        for parameter in owner.parameters()
        if parameter.requires_grad
    ]
