"""One call of an operator as a trace records it: its tensors, and its other arguments where they were recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyrometer.trace.costs.tensors import DTYPES, Tensor
from pyrometer.trace.naming.engine_names import EngineStep

LIST = "TensorList"


class NotRecordedError(Exception):
    """The trace does not hold what a formula needs; the message names it."""


@dataclass(frozen=True)
class Call:
    """Name and arguments, by position; what is not a tensor stands as text, such as `[1, 1]` or `False`."""

    name: str
    tensors: tuple[Tensor | None, ...] = ()
    lists: tuple[tuple[Tensor, ...] | None, ...] = ()
    texts: tuple[str, ...] = ()
    assumption: str | None = None
    serving: EngineStep | None = None  # the step of an inference engine in which it ran

    @property
    def in_place(self) -> bool:
        """Whether the result goes into the first argument."""
        return self.name.endswith("_") and not self.name.endswith("__")

    def tensor(self, i: int, *, dims: int | None = None) -> Tensor:
        """The tensor at a position.

        Raises:
            NotRecordedError: it is not there, or has not `dims` dimensions.
        """
        tensor = self.tensors[i] if i < len(self.tensors) else None
        if tensor is None:
            raise NotRecordedError(f"argument {i} is not a tensor with a recorded shape")
        if dims is not None and len(tensor.shape) != dims:
            raise NotRecordedError(f"argument {i} has {len(tensor.shape)} dimensions, not {dims}")
        return tensor

    def maybe(self, i: int) -> Tensor | None:
        """The tensor at a position, if one is given."""
        return self.tensors[i] if i < len(self.tensors) else None

    def several(self, i: int) -> tuple[Tensor, ...]:
        """The tensors of a list at a position.

        Raises:
            NotRecordedError: there is none.
        """
        tensors = self.lists[i] if i < len(self.lists) else None
        if tensors is None:
            raise NotRecordedError(f"argument {i} is not a list of tensors with recorded shapes")
        return tensors

    def all_tensors(self) -> list[Tensor]:
        """Every tensor, also of lists."""
        single = [tensor for tensor in self.tensors if tensor is not None]
        return single + [tensor for several in self.lists if several for tensor in several]

    def ints(self, i: int) -> list[int]:
        """A list of integers at a position; `[]` where None was passed.

        Raises:
            NotRecordedError: the trace does not hold scalar arguments, or it is something else.
        """
        value = self._value(i)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, int) for item in value):
            return [int(item) for item in value]
        raise NotRecordedError(f"argument {i} is {self.texts[i]!r}, not a list of integers")

    def integer(self, i: int) -> int:
        """An integer at a position.

        Raises:
            NotRecordedError: as for `ints`.
        """
        value = self._value(i)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise NotRecordedError(f"argument {i} is {self.texts[i]!r}, not an integer")

    def boolean(self, i: int) -> bool:
        """A flag at a position; False where None was passed.

        Raises:
            NotRecordedError: as for `ints`.
        """
        value = self._value(i)
        if value is None or isinstance(value, (bool, int)):
            return bool(value)
        raise NotRecordedError(f"argument {i} is {self.texts[i]!r}, not a flag")

    def _value(self, i: int) -> Any:
        if i >= len(self.texts):
            raise NotRecordedError(f"the trace does not hold argument {i}, which is no tensor")
        try:
            return json.loads(self.texts[i].lower().replace("none", "null") or "null")
        except ValueError:
            raise NotRecordedError(
                f"argument {i} is {self.texts[i]!r}, which is cut off or unknown"
            ) from None


def parse_call(
    name: str,
    dims: str | None,
    types: str | None,
    strides: str | None = None,
    concrete: str | None = None,
    *,
    list_dtype: str = "float32",
    serving: EngineStep | None = None,
) -> Call:
    """A call from the JSON texts of the table `ops`.

    The profiler does not write the element type of a list's tensors; `list_dtype` stands in, and the call says so.

    >>> parse_call("aten::mm", "[[2, 3], [3, 4]]", '["float", "float"]').tensor(1)
    Tensor(shape=(3, 4), dtype='float32', strides=None)

    Raises:
        NotRecordedError: there are no shapes.
    """
    shapes, kinds = _array(dims), _array(types)
    if not kinds or len(shapes) != len(kinds):
        raise NotRecordedError("the trace holds no shapes; capture with record_shapes")
    steps = _array(strides)
    steps = steps if len(steps) == len(shapes) else [None] * len(shapes)
    single: list[Tensor | None] = []
    several: list[tuple[Tensor, ...] | None] = []
    for shape, kind, step in zip(shapes, kinds, steps, strict=True):
        dtype = DTYPES.get(str(kind))
        single.append(_tensor(shape, dtype, step) if dtype else None)
        several.append(_tensors(shape, list_dtype) if kind == LIST else None)
    assumption = f"element type of a tensor list taken as {list_dtype}" if any(several) else None
    texts = tuple(str(one) for one in _array(concrete))
    return Call(name, tuple(single), tuple(several), texts, assumption, serving)


def _array(text: str | None) -> list[Any]:
    try:
        value = json.loads(text) if text else []
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _sizes(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(item) is int for item in value):
        return tuple(value)
    return None


def _tensor(shape: Any, dtype: str, strides: Any) -> Tensor | None:
    sizes = _sizes(shape)
    return None if sizes is None else Tensor(sizes, dtype, _sizes(strides))


def _tensors(shapes: Sequence[Any], dtype: str) -> tuple[Tensor, ...] | None:
    tensors = [_tensor(shape, dtype, None) for shape in shapes] if isinstance(shapes, list) else []
    return tuple(tensor for tensor in tensors if tensor is not None) if None not in tensors else None
