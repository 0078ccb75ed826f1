"""What an object is, told from its type alone: no method, property or comparison of the user's is ever called."""

from __future__ import annotations

import enum
import types
from typing import Any

import torch

from pyrometer.memory.private import autograd_nodes
from pyrometer.source.ownership import owner_of
from pyrometer.workload.importing import is_target_module

OWN_PACKAGES = ("pyrometer", "_pytest", "pytest", "pluggy", "torch.profiler", "torch.autograd.profiler")
"""Who watches is no holder: we, the test runner, and torch's profiler."""

_RUNNERS = ("/_pytest/", "/pluggy/", "\\_pytest\\", "\\pluggy\\")
_DICT_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)  # of objects, of modules
_ATOMS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    types.CodeType,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


class Kind(enum.IntEnum):
    """How an object is looked through."""

    PLAIN = 0
    """Python's garbage collector knows what it refers to."""
    ATOM = 1
    """Refers to nothing."""
    TENSOR = 2
    NODE = 3
    """Of an autograd graph."""
    STORAGE = 4
    ARRAY = 5
    """Of numpy; the collector does not look into it."""
    FUNCTION = 6
    OPTIMIZER = 7
    """Comes late: its parameters are the model's, and go by the model's names."""
    SLOT = 8
    """A saved tensor by itself."""
    OWN = 9
    """Ours, the test runner's or the profiler's: not looked through."""


def mro(cls: type) -> tuple[type, ...]:
    """The classes that a class is made of, itself first.

    >>> mro(bool)
    (<class 'bool'>, <class 'int'>, <class 'object'>)
    """
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(cls)
    return bases


def namespace(cls: type) -> Any:
    """What a class itself defines, read past its metaclass."""
    return type.__dict__["__dict__"].__get__(cls)


def class_name(cls: type) -> str:
    """The qualified name of a class, without the function that it may stand in.

    >>> def make():
    ...     class Trainer: ...
    ...     return Trainer
    >>> class_name(make())
    'Trainer'
    """
    name = type.__dict__["__qualname__"].__get__(cls)
    return short_name(name)


def short_name(qualified: Any) -> str:
    """A qualified name from its innermost function on.

    >>> short_name("make.<locals>.Trainer.step")
    'Trainer.step'
    """
    return str.rpartition(qualified, "<locals>.")[2] if issubclass(type(qualified), str) else "?"


def module_of(cls: type) -> str:
    """The name of the module that a class says it is from; empty when it says none."""
    name = namespace(cls).get("__module__")
    return name if type(name) is str else ""


def is_own_module(name: Any) -> bool:
    """Whether a module belongs to those who watch.

    >>> is_own_module("pyrometer.bench"), is_own_module("pyrometers")
    (True, False)
    """
    if type(name) is not str or is_target_module(name):
        return False
    return any(name == own or name.startswith(f"{own}.") for own in OWN_PACKAGES)


def is_own_file(path: str) -> bool:
    """Whether code belongs to those who watch."""
    return owner_of(path) == "ours" or any(part in path for part in _RUNNERS)


def kind_of_type(cls: type) -> Kind:
    """How instances of a class are looked through."""
    import numpy as np

    bases = {id(base) for base in mro(cls)}
    pairs = (
        (Kind.TENSOR, torch.Tensor),
        (Kind.STORAGE, torch.UntypedStorage),
        (Kind.ARRAY, np.ndarray),
        (Kind.FUNCTION, types.FunctionType),
        (Kind.OPTIMIZER, torch.optim.Optimizer),
    )
    for kind, known in pairs:
        if id(known) in bases:
            return kind
    if any(cls is atom for atom in _ATOMS):
        return Kind.ATOM
    if autograd_nodes.is_node_type(cls):
        return Kind.NODE
    if autograd_nodes.is_slot_type(cls):
        return Kind.SLOT
    return Kind.OWN if is_own_module(module_of(cls)) else Kind.PLAIN


def is_kind(value: Any, cls: type) -> bool:
    """`isinstance` that cannot be fooled or made to fail: by the type alone.

    >>> is_kind(True, int), is_kind("1", int)
    (True, False)
    """
    return any(base is cls for base in mro(type(value)))


def attributes_of(value: Any) -> dict[str, Any]:
    """The `__dict__` of an object, empty where it has none or a class puts something of its own in the place."""
    for base in mro(type(value)):
        slot = namespace(base).get("__dict__")
        if slot is not None:
            found = slot.__get__(value) if type(slot) in _DICT_SLOTS else None
            return found if type(found) is dict else {}
    return {}


def slots_of(value: Any) -> list[tuple[str, Any]]:
    """Names and values of an object's `__slots__` that are set."""
    slots = []
    for base in mro(type(value)):
        for name, member in list(namespace(base).items()):
            if type(member) is types.MemberDescriptorType:
                try:
                    slots.append((name, member.__get__(value)))
                except AttributeError:  # declared, and not set
                    continue
    return slots
