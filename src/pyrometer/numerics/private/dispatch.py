"""Seeing every operator: torch's dispatch mode, and what it tells of an operator."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from pyrometer.workload.whereabouts.dispatch import DispatchMode

__all__ = ["DispatchMode", "is_transformed", "missing", "name_of", "writes"]


def missing() -> list[str]:
    """What this torch lacks.

    >>> missing()
    []
    """
    if hasattr(torch.ops.aten.add_.Tensor, "_schema"):
        return []
    return ["schemas of operators: what is written in place is not followed"]


@cache
def name_of(operator: Any) -> str:
    """An operator without its namespace and overload.

    >>> name_of(torch.ops.aten.pow.Tensor_Scalar)
    'pow'
    """
    return str(operator.name()).rpartition("::")[2].partition(".")[0]


@cache
def writes(operator: Any) -> bool:
    """Whether an operator writes to some of its arguments.

    >>> writes(torch.ops.aten.add_.Tensor), writes(torch.ops.aten.view.default)
    (True, False)
    """
    schema = getattr(operator, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def is_transformed(tensor: torch.Tensor) -> bool:
    """Whether a tensor stands for others inside of a transform such as `vmap`, and has no values of its own."""
    functorch = getattr(torch._C, "_functorch", None)  # noqa: SLF001
    ask = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return bool(ask is not None and ask(tensor))
