"""What checkpoint planning needs of torch's private interfaces: versions of tensors, and the compiler's memory budget."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was written to; 0 where torch does not count, as for tensors of inference mode.

    >>> version_of(torch.zeros(2).add_(1))
    1
    """
    try:
        return int(getattr(tensor, "_version", 0))
    except RuntimeError:
        return 0


def activation_budget(share: float) -> contextlib.AbstractContextManager[None]:
    """Let what is compiled meanwhile keep about this share of the activations; the setting is restored."""
    patched: contextlib.AbstractContextManager[None] = _functorch_config().patch(
        activation_memory_budget=share
    )
    return patched


def current_activation_budget() -> float | None:
    """The setting in force; `None` where this torch has none.

    >>> current_activation_budget()
    1.0
    """
    return getattr(_functorch_config(), "activation_memory_budget", None)


def forget_compiled(model: nn.Module) -> None:
    """Have a model compiled anew: a changed memory budget is none of the things that Dynamo checks for.

    What was compiled for other code stays, unlike after `torch._dynamo.reset`.
    """
    from torch._dynamo.eval_frame import reset_code  # type: ignore[attr-defined]

    for part in model.modules():
        # A compiled module calls by way of a function of torch's, which is what the compiled code hangs on.
        for function in (part.forward, getattr(part.forward, "_torchdynamo_orig_callable", None)):
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if code is not None:
                reset_code(code)


def _functorch_config() -> Any:
    import torch._functorch.config as module

    return module
