"""Batches of any form: their tensors, and the same batch with other tensors in their places.

A batch may be a tensor, a container (tuple, named tuple, list, mapping, dataclass), or an object with a method `to` that
holds tensors; nested at will. Everything else in it passes through as it is.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import enum
import inspect
import pathlib
import types
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np
import torch

_MAX_PARTS = 10_000
_INERT = (
    str,
    bytes,
    bytearray,
    int,
    float,
    complex,
    range,
    slice,
    type(None),
    type,
    enum.Enum,
    np.ndarray,
    np.generic,
    torch.dtype,
    torch.device,
    pathlib.PurePath,
    dt.date,
    dt.timedelta,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
)
"""Kinds of things that hold no tensor which a method `to` would move."""


@dataclasses.dataclass
class Mover:
    """Makes the same batch with other tensors in their places; the batch that it is given stays as it is.

    A tensor or object that occurs several times is replaced once, by the same.

    Attributes:
        tensor: what takes a tensor's place.
        object: what takes the place of an object with a method `to` that holds tensors.
    """

    tensor: Callable[[torch.Tensor], Any]
    object: Callable[[Any], Any]
    _made: dict[int, tuple[Any, Any]] = dataclasses.field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        """The batch, or a part of it, with everything replaced."""
        if isinstance(value, torch.Tensor):
            return self._once(value, self.tensor)
        if is_movable(value):
            return self._once(value, self.object)
        return self._container(value)

    def _once(self, value: Any, replace: Callable[[Any], Any]) -> Any:
        # The value is kept beside its replacement, so that its id is not given away meanwhile.
        if id(value) not in self._made:
            self._made[id(value)] = (value, replace(value))
        return self._made[id(value)][1]

    def _container(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return _mapping_like(value, {key: self(part) for key, part in value.items()})
        if isinstance(value, tuple):
            parts = [self(part) for part in value]
            if type(value) is tuple:
                return tuple(parts)
            return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
        if isinstance(value, list):
            return _list_like(value, [self(part) for part in value])
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _dataclass_like(value, self)
        return value


def is_movable(value: Any) -> bool:
    """Whether an object has a method `to` and holds tensors, so that it is asked to move itself.

    >>> is_movable(torch.nn.utils.rnn.pack_sequence([torch.zeros(2)])), is_movable({"x": torch.zeros(2)})
    (True, False)
    """
    if isinstance(value, (torch.Tensor, type, *_INERT)) or not callable(getattr(value, "to", None)):
        return False
    return bool(tensors_in(value)[0])


def moved_object(value: Any, device: torch.device) -> Any:
    """An object moved by its own `to`, without waiting where it knows how not to."""
    try:
        parameters = inspect.signature(value.to).parameters.values()
    except (TypeError, ValueError):  # a builtin method may not tell
        return value.to(device)
    takes_it = any(
        parameter.name == "non_blocking" or parameter.kind is parameter.VAR_KEYWORD
        for parameter in parameters
    )
    return value.to(device, non_blocking=True) if takes_it else value.to(device)


def tensors_in(value: Any) -> tuple[list[torch.Tensor], bool]:
    """The tensors that a batch holds, each once, and whether they are all: objects written in C may hide some.

    >>> tensors_in({"x": [torch.zeros(2), "name"]})
    ([tensor([0., 0.])], True)
    >>> tensors_in(iter([torch.zeros(2)]))
    ([], False)
    """
    tensors: dict[int, torch.Tensor] = {}
    seen: dict[int, Any] = {}
    open_parts = [value]
    complete = True
    while open_parts:
        part = open_parts.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if isinstance(part, torch.Tensor):
            tensors[id(part)] = part
        elif not isinstance(part, _INERT):
            inner = parts_of(part)
            if inner is None or len(seen) > _MAX_PARTS:
                complete = False
            else:
                open_parts.extend(reversed(list(inner)))
    return list(tensors.values()), complete


def parts_of(value: Any) -> Iterable[Any] | None:
    """What a container or object is made of; `None` where that cannot be seen."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    if not hasattr(value, "__dict__") and not slots:
        return None
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name) for name in slots)]


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor has one block of memory of its own: no sparse or nested one, and no wrapper around others."""
    wraps = hasattr(tensor, "__tensor_flatten__")
    return tensor.layout == torch.strided and not tensor.is_nested and not wraps


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"})


def _mapping_like(value: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return entries
    if isinstance(value, MutableMapping):
        mapping = copy.copy(value)
        mapping.update(entries)
        return mapping
    kind: Any = type(value)
    return kind(entries)


def _list_like(value: list[Any], parts: list[Any]) -> list[Any]:
    if type(value) is list:
        return parts
    made = copy.copy(value)
    made[:] = parts
    return made


def _dataclass_like(value: Any, replace: Callable[[Any], Any]) -> Any:
    # Not by dataclasses.replace: that runs __init__ and __post_init__ again, and refuses fields without init.
    dataclass = copy.copy(value)
    for field in dataclasses.fields(value):
        if hasattr(value, field.name):
            object.__setattr__(dataclass, field.name, replace(getattr(value, field.name)))
    return dataclass
