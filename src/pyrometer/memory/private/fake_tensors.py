"""Tensors with shapes, dtypes and storages but without data: torch's fake tensors.

A program runs on them with all of its own Python, operator by operator, so that allocations and frees come in the real
order; nothing is computed, and no memory is taken. What depends on values cannot run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from pyrometer.workload.output import without_log


def fake_mode() -> Any:
    """A mode in which every new tensor has no data.

    Real tensors that a program reaches by itself (through a closure, a global) are taken as what they are.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def copying(
    mode: Any, made: Callable[[torch.Tensor], torch.Tensor]
) -> contextlib.AbstractContextManager[Any]:
    """Make `copy.deepcopy` hand every tensor that it meets to `made`; parameters that it must copy lose their data."""
    from torch._subclasses.fake_tensor import FakeCopyMode

    class Copying(FakeCopyMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is not torch.Tensor.__deepcopy__:
                return super().__torch_function__(func, types, args, kwargs)
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = made(tensor)
            return memo[id(tensor)]

    return Copying(mode)


def without_data(mode: Any, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's double: the same shape, strides, dtype and size of storage, and no gradient.

    A single number on the CPU keeps its value, since optimizers look at their step count.
    """
    if tensor.numel() == 1 and tensor.device.type == "cpu" and not tensor.requires_grad and not tensor.dim():
        value = tensor.item()
        with mode:
            return torch.tensor(value, dtype=tensor.dtype)
    double: torch.Tensor = mode.from_tensor(tensor, static_shapes=True)
    if double.is_leaf:
        double.grad = None
    return double


def quiet() -> contextlib.AbstractContextManager[None]:
    """Keep torch from logging the traceback of an operator that cannot run without data; the error says it."""
    return without_log("torch._subclasses.fake_tensor")


def is_missing_value(error: BaseException, operator: Any) -> bool:
    """Whether reading a number out of a tensor failed because there is none."""
    from torch._subclasses.fake_tensor import DataDependentOutputException

    return operator is torch.ops.aten._local_scalar_dense.default and isinstance(  # noqa: SLF001
        error, DataDependentOutputException
    )


def why_data_is_needed(error: BaseException) -> str | None:
    """In words, why a program cannot run without data; `None` when the error is of another kind."""
    from torch._subclasses import fake_tensor

    if isinstance(error, fake_tensor.DataDependentOutputException):
        return f"{_operator(error)} needs the value of a tensor"
    if isinstance(error, fake_tensor.DynamicOutputShapeException):
        return f"the size of what {_operator(error)} returns depends on values"
    unsupported = [
        getattr(fake_tensor, name, None)
        for name in ("UnsupportedOperatorException", "UnsupportedFakeTensorException")
    ]
    if isinstance(error, tuple(kind for kind in unsupported if kind is not None)):
        return f"{_operator(error)} does not say what it returns without computing it"
    text = str(error)
    if any(sign in text for sign in _SIGNS):
        return "an operator wants the data of a tensor"
    return None


_SIGNS = (
    "Cannot access data pointer of Tensor",
    "data is not allocated yet",
    "__torch__.torch.classes",
    "FakeTensor",
    "fake tensor",
    "meta tensor",
    "'Meta' backend",
    ".numpy() is not supported for tensor subclasses",
)


def _operator(error: BaseException) -> str:
    return str(getattr(error, "func", None) or error).removesuffix(".default").splitlines()[0]


class FiniteScaler(torch.amp.GradScaler):
    """A gradient scaler that steps without looking whether the gradients are finite, as they nearly always are."""

    def _maybe_opt_step(
        self, optimizer: torch.optim.Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> float | None:
        del optimizer_state
        return optimizer.step(*args, **kwargs)  # type: ignore[no-any-return]
