"""What autograd keeps alive, read without running anything.

A node's `_saved_*` attributes unpack what was saved: checkpointed parts run again, and hooks of the user are called.
`_raw_saved_*` hand out the slot itself: `data` is the tensor, `None` once it was freed, or, where a pack hook was at work,
whatever the hook returned; `unpack_hook` then is the function that would turn it back.

To look at a node gives it a Python object. In torch 2.13 that object stays as long as the node, and nodes that have one are freed
one inside the other: a chain of some forty thousand that was looked at overflows a stack of 8 MiB when it is freed (measured;
without Python objects torch frees any depth). So nobody may look deeper than `max_depth`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

_OURS_ONLY = 2
"""References to a Python object in one variable while they are counted."""

_RAW = "_raw_saved_"


class Slot(NamedTuple):
    """One saved value of a node."""

    name: str
    """Of the formula's variable, such as `self` or `weight`; `tensors` in a function of the user's own."""
    data: Any
    """A tensor; `None` when it was freed; what the pack hook returned when there was one."""
    unpack_hook: Any
    """The function that would turn `data` back into a tensor; `None` where no hook was at work."""
    freed: bool


def is_node_type(cls: type) -> bool:
    """Whether instances of a class are nodes of an autograd graph."""
    for base in type.__dict__["__mro__"].__get__(cls):
        names = type.__dict__["__dict__"].__get__(base)
        if "next_functions" in names and "metadata" in names:
            return True
    return False


def node_name(node: Any) -> str:
    """The name of a node, such as MulBackward0 or, for a function of the user's own, ScaleBackward."""
    return str(type.__dict__["__name__"].__get__(type(node)))


def next_nodes(node: Any) -> list[Any]:
    """The nodes that backward runs after this one."""
    return [following for following, _ in node.next_functions if following is not None]


def sequence_number(node: Any) -> int:
    """The number of a node in the order in which its thread made them; those that follow it have smaller ones."""
    get = getattr(node, "_sequence_nr", None)
    return 0 if get is None else int(get())


@functools.lru_cache(maxsize=1)
def max_depth() -> int | None:
    """How many nodes of one chain may be looked at, a quarter of what a usual stack bears; `None` where there is no limit.

    Threads of other systems than Linux have stacks of 512 KiB.
    """
    import torch

    with torch.inference_mode(False), torch.enable_grad():
        node: Any = torch.ones(1, requires_grad=True).exp().sum().grad_fn
    following = node.next_functions[0][0]
    if sys.getrefcount(following) <= _OURS_ONLY:
        return None
    return 8000 if sys.platform == "linux" else 500


def slots_of(node: Any, names: tuple[str, ...] | None = None) -> Iterator[Slot]:
    """What a node saved; nothing is unpacked, recomputed or called.

    Args:
        node: of an autograd graph.
        names: those of its class's slots where they are known, from `slot_names`.
    """
    for attribute in slot_names(type(node)) if names is None else names:
        name = attribute.removeprefix(_RAW)
        try:
            raw = getattr(node, attribute)
        except RuntimeError:  # "trying to backward through the graph a second time": it was freed
            yield Slot(name, None, None, freed=True)
            continue
        for slot in raw if isinstance(raw, (tuple, list)) else (raw,):
            if slot is not None:
                yield read_slot(name, slot)


def own_attributes(node: Any) -> dict[str, Any]:
    """What a function of the user's own put on its context: `ctx.mask = ...`."""
    attributes = getattr(node, "__dict__", None)
    return dict(attributes) if type(attributes) is dict else {}


def leaf_of(node: Any) -> Any:
    """The parameter that a node accumulates its gradient in; `None` for other nodes."""
    return node.variable if node_name(node) == "AccumulateGrad" else None


def grad_of(tensor: Any) -> Any:
    """The gradient of a tensor, without the warning about tensors that are no leaves; `None` when there is none."""
    if not (tensor.is_leaf or tensor.retains_grad):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


def grad_fn_of(tensor: Any) -> Any:
    """The node that made a tensor; `None` when there is none, or when torch refuses to tell.

    It refuses for views of several outputs that were changed in place.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def as_is() -> contextlib.AbstractContextManager[Any]:
    """Attributes of tensors are read as they are: no `__torch_function__` of a subclass or of a mode is called."""
    import torch

    disable = getattr(torch._C, "DisableTorchFunction", None)  # noqa: SLF001
    return contextlib.nullcontext() if disable is None else disable()


def slot_names(cls: type) -> tuple[str, ...]:
    """The names of the raw slots that a class of nodes has."""
    names = [
        name
        for base in type.__dict__["__mro__"].__get__(cls)
        for name in type.__dict__["__dict__"].__get__(base)
        if type(name) is str and name.startswith(_RAW)
    ]
    return tuple(dict.fromkeys(names))


def is_slot_type(cls: type) -> bool:
    """Whether instances of a class are saved tensors that someone keeps by themselves, as checkpointing keeps its inputs."""
    names = type.__dict__["__dict__"].__get__(cls)
    name = type.__dict__["__name__"].__get__(cls)
    return name == "SavedTensor" and "unpack_hook" in names


def read_slot(name: str, slot: Any) -> Slot:
    """The content of a raw slot."""
    data, hook = slot.data, getattr(slot, "unpack_hook", None)
    if data is not None or hook is not None:
        return Slot(name, data, hook, freed=False)
    try:
        slot.unpack()  # there is nothing to unpack: this only tells an optional input that was not given from a freed one
    except RuntimeError:
        return Slot(name, None, None, freed=True)
    return Slot(name, None, None, freed=False)
