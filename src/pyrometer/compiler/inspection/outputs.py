"""Outputs of steps as lists and dicts of tensors and numbers, so that they can be compared: also those that are objects."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

from pyrometer.workload.workload import Mark, Session, Workload

W = TypeVar("W", bound=Workload)


class _PlainSession(Session):
    """A session whose steps return plain outputs."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.device, session.surroundings)
        self._session = session

    def prepare(self) -> Any:
        return self._session.prepare()

    def step(self, prepared: Any) -> Any:
        return plain_output(self._session.step(prepared))

    def phased_step(self, mark: Mark) -> Any:
        return plain_output(self._session.phased_step(mark))

    @property
    def units_per_step(self) -> float:
        return self._session.units_per_step


def with_plain_outputs(work: W) -> W:
    """The same work, whose steps return plain outputs; the given one stays as it is."""

    @contextlib.contextmanager
    def opened() -> Iterator[Session]:
        with work.open() as session:
            yield _PlainSession(session)

    other = copy.copy(work)
    other.open = opened  # type: ignore[method-assign] # the class is kept, which says what kind of work it is
    return other


def plain_output(value: Any, around: frozenset[int] = frozenset()) -> Any:
    """Dataclasses, mappings and other objects that hold tensors as dicts, sequences as lists; anything else as it is.

    Args:
        value: what a step returned.
        around: identities of what it lies in; an object that lies in itself is taken apart once.

    >>> @dataclasses.dataclass
    ... class Output:
    ...     logits: torch.Tensor
    ...     name: str = "a"
    >>> plain_output((Output(torch.ones(1)), {"b": 1, "a": 2}))
    [{'logits': tensor([1.]), 'name': 'a'}, {'a': 2, 'b': 1}]
    """
    if isinstance(value, (torch.Tensor, nn.Module, type)):
        return value
    if id(value) in around:
        return None
    inside = around | {id(value)}
    if isinstance(value, (list, tuple)):
        return [plain_output(item, inside) for item in value]
    content = _content(value)
    if content is None:
        return value
    named = {str(name): plain_output(each, inside) for name, each in content.items()}
    return dict(sorted(named.items()))


def _content(value: Any) -> Mapping[Any, Any] | None:
    """What an object is made of; `None` for what is not taken apart."""
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    inside: Any = getattr(value, "__dict__", None)
    return inside if isinstance(inside, dict) and _holds_tensor(inside) else None


def _holds_tensor(value: Any) -> bool:
    waiting, met = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, torch.Tensor):
            return True
        if isinstance(one, (str, bytes, nn.Module, type)) or id(one) in met:
            continue
        met.add(id(one))
        if isinstance(one, (list, tuple)):
            waiting += one
        inside = one if isinstance(one, Mapping) else getattr(one, "__dict__", None)
        if isinstance(inside, Mapping):
            waiting += inside.values()
    return False
