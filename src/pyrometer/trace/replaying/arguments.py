"""Arguments of a recorded call, as Python that makes their like: tensors by shape, type and strides, scalars by value.

The profiler writes no values of tensors. Floating ones are random; integers are random too, and below every size of the
other tensors, so that they are legal as indices of any of their dimensions.
"""

from __future__ import annotations

import ast
import keyword
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrometer.errors import InputError
from pyrometer.trace.costs.call import LIST
from pyrometer.trace.costs.tensors import DTYPES

if TYPE_CHECKING:
    import torch

DECIDE_BY_VALUE = ("cum_seq", "cu_seq", "offsets", "indptr", "block_table", "seqused")
"""Parts of the names of tensors whose values decide what is computed: random ones would be illegal, or another problem."""

SCALAR_TYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", None, "complex64", "complex128", "bool",
    None, None, None, "bfloat16",
)  # fmt: skip
"""Numbers that the profiler writes for `c10::ScalarType`."""

LAYOUTS = {0: "torch.strided"}
MEMORY_FORMATS = {
    0: "torch.contiguous_format",
    1: "torch.preserve_format",
    2: "torch.channels_last",
    3: "torch.channels_last_3d",
}


@dataclass(frozen=True)
class Recorded:
    """One argument as the trace holds it."""

    kind: str  # C++ type, `Scalar`, `ScalarList`, `TensorList`; empty for what has no shape
    dims: Any
    strides: Any
    text: str  # a scalar's value


@dataclass(frozen=True)
class Tensor:
    """A tensor to make."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as torch spells it
    strides: tuple[int, ...] | None


class Missing(InputError):  # noqa: N818 - it says what the trace lacks
    """An argument cannot be rebuilt; the message names it."""


def torch_dtype(kind: str) -> str | None:
    """The dtype of a C++ type, by the name that torch gives it.

    >>> torch_dtype("c10::Float8_e4m3fn"), torch_dtype("long int"), torch_dtype("Scalar")
    ('float8_e4m3fn', 'int64', None)
    """
    known = DTYPES.get(kind)
    return kind.removeprefix("c10::").lower() if known in {"float8", "float4"} else known


def rebuild(argument: torch.Argument, recorded: Recorded | None) -> Tensor | str | None:
    """A tensor, the Python text of a scalar, or `None` for an argument that keeps its default.

    Raises:
        Missing: the trace does not hold what is needed.
    """
    what = f"argument {argument.name} ({argument.type})"
    dtype = torch_dtype(recorded.kind) if recorded is not None else None
    if recorded is not None and dtype is not None and "Tensor" in str(argument.type):
        if any(part in argument.name for part in DECIDE_BY_VALUE):
            raise Missing(f"{what} decides by its values what is computed, and a trace holds none")
        shape, strides = tuple(recorded.dims), recorded.strides
        held = tuple(strides) if isinstance(strides, list) and len(strides) == len(shape) else None
        name = f"{argument.name}_" if keyword.iskeyword(argument.name) else argument.name
        return Tensor(name, shape, dtype, held)
    if recorded is not None and recorded.kind == LIST:
        raise Missing(f"{what} is a list of tensors, whose element types the profiler does not write")
    if recorded is not None and recorded.text.strip():
        return _scalar(str(argument.type), recorded.text, what)
    if argument.has_default_value() or "Optional" in str(argument.type):
        return None if argument.has_default_value() else "None"
    raise Missing(f"{what} was not recorded; record with record_shapes=True")


def _scalar(kind: str, text: str, what: str) -> str:
    if "Device" in kind:
        return "DEVICE"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if "str" in kind:
            return repr(text)
        if text.strip().lstrip("-") in {"inf", "nan"}:
            return f"float({text.strip()!r})"
        raise Missing(f"{what} is {text!r} in the trace, which is cut off or no number") from None
    return repr(value)


def named_value(argument: torch.Argument, text: str) -> str:
    """What a whole number of the trace means where torch's own schema names an enumeration by the argument's name.

    >>> from types import SimpleNamespace
    >>> named_value(SimpleNamespace(name="dtype"), "15"), named_value(SimpleNamespace(name="dim"), "1")
    ('torch.bfloat16', '1')
    """
    if not text.isdigit():
        return text
    number = int(text)
    if argument.name in {"dtype", "out_dtype"} and number < len(SCALAR_TYPES) and SCALAR_TYPES[number]:
        return f"torch.{SCALAR_TYPES[number]}"
    if argument.name == "layout":
        return LAYOUTS.get(number, text)
    return MEMORY_FORMATS.get(number, text) if argument.name == "memory_format" else text
