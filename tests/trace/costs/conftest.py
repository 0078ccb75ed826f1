"""Calls as a trace would record them, made from tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.trace.costs.call import Call, parse_call
from pyrometer.trace.costs.registry import Cost, cost_of

SPELT = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
    torch.complex64: "c10::complex<float>",
}


def recorded(name: str, *args: Any) -> Call:
    """The call of an operator with these arguments, by way of the JSON that the profiler writes."""
    dims, types, strides, concrete = [], [], [], []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            entry = (list(arg.shape), SPELT[arg.dtype], list(arg.stride()), "")
        elif isinstance(arg, (list, tuple)) and arg and isinstance(arg[0], torch.Tensor):
            entry = ([list(t.shape) for t in arg], "TensorList", [list(t.stride()) for t in arg], "")
        elif isinstance(arg, (list, tuple)):
            entry = ([], "ScalarList", [], str(list(arg)))
        else:
            entry = ([], "" if arg is None else "Scalar", [], "" if arg is None else str(arg))
        for column, value in zip((dims, types, strides, concrete), entry, strict=True):
            column.append(value)
    return parse_call(name, *(json.dumps(column) for column in (dims, types, strides, concrete)))


@pytest.fixture(scope="session")
def record() -> Callable[..., Call]:
    """`record("aten::mm", a, b)` gives the recorded call."""
    return recorded


@pytest.fixture(scope="session")
def cost() -> Callable[..., Cost]:
    """`cost("aten::mm", a, b)` gives what it costs."""
    return lambda name, *args: cost_of(recorded(name, *args))


@pytest.fixture(scope="session")
def counted() -> Callable[..., int]:
    """FLOP that torch's own counter finds in a function."""
    from torch.utils.flop_counter import FlopCounterMode

    def count(function: Callable[..., Any], *args: Any, **options: Any) -> int:
        with FlopCounterMode(display=False) as counter:
            function(*args, **options)
        return counter.get_total_flops()

    return count
