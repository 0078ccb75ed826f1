"""Taking and restoring the state that running a workload may change.

Everything here is a context manager that puts back what it found, also when the body raises.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from pyrometer.quantity import Bytes


class Stateful(Protocol):
    """Whatever has a state dict: optimizers, schedulers, scalers."""

    def state_dict(self) -> dict[str, Any]: ...  # noqa: D102

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...  # noqa: D102


@contextlib.contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the random state of Python, NumPy and torch (CPU and every initialised CUDA device)."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - the legacy global state is exactly what must be kept
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


@contextlib.contextmanager
def preserved_globals() -> Iterator[None]:
    """Restore torch's global settings that a step, or we, may change: grad mode, threads, default dtype, TF32."""
    threads = torch.get_num_threads()
    grad = torch.is_grad_enabled()
    dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    precision = torch.get_float32_matmul_precision()
    benchmark = torch.backends.cudnn.benchmark
    try:
        yield
    finally:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        if torch.get_float32_matmul_precision() != precision:
            torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.benchmark = benchmark


@contextlib.contextmanager
def preserved_module(model: nn.Module, *, parameters: bool) -> Iterator[None]:
    """Restore a module's mode, gradients and buffers, and with `parameters` also its parameters.

    The copies live on the module's own device; `snapshot_bytes` says what they cost.
    """
    modes = [(module, module.training) for module in model.modules()]
    grads = [(p, p.grad) for p in model.parameters()]
    kept_grads = [g if g is None else g.detach().clone() for _, g in grads]
    tensors = _changeable(model, parameters=parameters)
    kept = [tensor.detach().clone() for tensor in tensors]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
        with torch.no_grad():
            for tensor, value in zip(tensors, kept, strict=True):
                tensor.copy_(value)
            for (parameter, grad), value in zip(grads, kept_grads, strict=True):
                parameter.grad = grad
                if grad is not None and value is not None:
                    grad.copy_(value)


@contextlib.contextmanager
def preserved_state_dict(owner: Stateful | None) -> Iterator[None]:
    """Restore an optimizer, scheduler or scaler through its state dict."""
    if owner is None:
        yield
        return
    kept = copy.deepcopy(owner.state_dict())
    try:
        yield
    finally:
        owner.load_state_dict(kept)


def snapshot_bytes(model: nn.Module, *, parameters: bool) -> Bytes:
    """Memory that `preserved_module` takes for its copies."""
    tensors = _changeable(model, parameters=parameters)
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return sum(t.numel() * t.element_size() for t in [*tensors, *grads])


def _changeable(model: nn.Module, *, parameters: bool) -> list[torch.Tensor]:
    found: list[torch.Tensor] = list(model.buffers())
    return found + list(model.parameters()) if parameters else found
