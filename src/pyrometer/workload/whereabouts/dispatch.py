"""Torch's dispatch mode, without the compiler that the first operator below one would import, for a second or two."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """Sees every operator; Dynamo leaves it alone where there is one, as it does torch's own modes."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch's way to skip it imports it

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)  # type: ignore[no-untyped-call]
        if "__torch_dispatch__" in cls.__dict__:
            cls.__torch_dispatch__ = _outside_dynamo(cls.__dict__["__torch_dispatch__"])  # type: ignore[method-assign]


def _outside_dynamo(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    skip = getattr(torch, "_disable_dynamo", None)
    hidden = dispatch if skip is None else skip(dispatch, recursive=True)

    @functools.wraps(dispatch)
    def either(*args: Any, **named: Any) -> Any:
        return (hidden if "torch._dynamo" in sys.modules else dispatch)(*args, **named)

    return either
