"""What a session runs, with the wrappers of `torch.compile` taken off for the length of a step."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from torch import nn

from pyrometer.workload.workload import Session

IN_PLACE = "_compiled_call_impl"
"""Where `module.compile()` keeps the compiled call of a module; without it the module runs as it is written."""


class _Swap(NamedTuple):
    namespace: dict[str, Any]
    name: str
    compiled: Any
    plain: Any


class BareProgram:
    """The compiled wrappers that can be reached from a session, and what they wrap.

    Reached are what the session itself calls, and of each module its parts, its methods and its call. What a function finds
    in a closure or among its globals is not.

    Args:
        session: an open session.
    """

    def __init__(self, session: Session) -> None:
        found = vars(session)
        self._swaps = list(_wrappers(found))
        roots = [original_of(each) for each in found.values()]
        for module in {id(part): part for root in roots for part in _modules(root)}.values():
            self._swaps += [*_wrappers(vars(module)), *_wrappers(module._modules)]  # noqa: SLF001 - no other way to the parts
            if vars(module).get(IN_PLACE) is not None:
                self._swaps.append(_Swap(vars(module), IN_PLACE, vars(module)[IN_PLACE], None))

    def take_off(self) -> None:
        """From now on the program runs as it is written."""
        for namespace, name, _, plain in self._swaps:
            namespace[name] = plain

    def put_back(self) -> None:
        """All is as it was."""
        for namespace, name, compiled, _ in self._swaps:
            namespace[name] = compiled


def original_of(wrapped: Any) -> Any:
    """What is behind `torch.compile`; anything else as it is.

    >>> import torch
    >>> model = nn.Linear(2, 2)
    >>> original_of(torch.compile(model, backend="eager")) is model, original_of(3)
    (True, 3)
    """
    while is_wrapper(wrapped):
        wrapped = _behind(wrapped)
    return wrapped


def is_wrapper(value: Any) -> bool:
    """Whether something is what `torch.compile` returned; a copy of the attributes of one is not."""
    if isinstance(value, nn.Module):
        return "_orig_mod" in value._modules  # noqa: SLF001 - an attribute of that name may be a property
    return (
        isinstance(value, FunctionType)
        and getattr(value, "_torchdynamo_orig_callable", None) is not None
        and getattr(value, "_torchdynamo_wrapper_id", id(value)) == id(value)
    )


def _behind(wrapper: Any) -> Any:
    return (
        wrapper._modules["_orig_mod"]  # noqa: SLF001
        if isinstance(wrapper, nn.Module)
        else wrapper._torchdynamo_orig_callable  # noqa: SLF001 - torch's own name for it
    )


def _wrappers(namespace: dict[str, Any]) -> Iterator[_Swap]:
    for name, value in namespace.items():
        if name not in {"_orig_mod", IN_PLACE} and is_wrapper(value):
            yield _Swap(namespace, name, value, original_of(value))


def _modules(root: Any) -> Iterator[nn.Module]:
    """A module and its parts, also those that are wrapped."""
    if isinstance(root, nn.Module):
        yield from (part for part in root.modules() if not is_wrapper(part))
