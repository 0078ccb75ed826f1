"""The same work without compiled code, also where the compiling is done inside of it."""

from __future__ import annotations

import contextlib
import copy
import sys
import timeit
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import nn

from pyrometer.compiler.inspection.bare import BareProgram
from pyrometer.compiler.private.cache_entries import never_compile
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Mark, Session, Workload

W = TypeVar("W", bound=Workload)

TRIALS = 500
COMPILE = torch.compile
"""Torch's own: a program may have put something else in its place."""


class EntryPoints(NamedTuple):
    """How often a step goes through a wrapper of `torch.compile`."""

    functions: int = 0
    modules: int = 0
    """Those of them that are modules."""


class EagerSession(Session):
    """A session whose steps run eagerly: wrappers of torch.compile are taken off, or else the stance is `force_eager`.

    The wrappers and the stance are back after each step.

    Args:
        session: the open session; it may go on being used by itself.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session.device, session.surroundings)
        self._session = session
        self._bare = BareProgram(session)
        self._stance = _stance_object()

    def prepare(self) -> Any:
        """As the session does."""
        return self._session.prepare()

    def step(self, prepared: Any) -> Any:
        """One eager step."""
        self._bare.take_off()
        try:
            with self._stance:
                return self._session.step(prepared)
        finally:
            self._bare.put_back()

    def phased_step(self, mark: Mark) -> Any:
        """One eager step with its phases."""
        self._bare.take_off()
        try:
            with self._stance:
                return self._session.phased_step(mark)
        finally:
            self._bare.put_back()

    @property
    def units_per_step(self) -> float:
        """Of the session."""
        return self._session.units_per_step

    @property
    def padding_ratio(self) -> float | None:
        """Of the session."""
        return self._session.padding_ratio

    def forcing_s(self) -> Seconds | None:
        """What each step costs only because it is made to run eagerly; runs one step.

        That is the stance, and a pass through each wrapper that could not be taken off. Where there is none of those, the
        stance is not needed, and not taken from now on.

        Returns:
            Seconds per step on this machine; `None` where it cannot be told, because a profiler in Python is at work.
        """
        entries = entry_points(self)
        if entries == EntryPoints():
            self._stance = contextlib.nullcontext()
            return 0.0
        return None if entries is None else forcing_cost_s(entries)


def entry_points(session: Session) -> EntryPoints | None:
    """How often a step goes through `torch.compile`, counted by Python's own profile of the calls of one step.

    Returns:
        `None` where it cannot be told, because a profiler in Python is at work.
    """
    if sys.getprofile() is not None:
        return None
    function, module = _nothing_compiled()
    counts = {id(function.__code__): 0, id(type(module).__call__.__code__): 0}

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and id(frame.f_code) in counts:
            counts[id(frame.f_code)] += 1

    never_compile(count)
    prepared = session.prepare()
    sys.setprofile(count)
    try:
        session.step(prepared)
    finally:
        sys.setprofile(None)
    return EntryPoints(*counts.values())


def forced_eager(work: W) -> W:
    """The same work, of which every session runs eagerly; the given one stays as it is.

    >>> from pyrometer.workload.call import Call
    >>> work = forced_eager(Call(torch.compile(lambda x: x + 1, backend="eager"), torch.ones(1)))
    >>> with work.open() as session:
    ...     session.step(session.prepare())
    tensor([2.])
    """

    @contextlib.contextmanager
    def opened() -> Iterator[Session]:
        with work.open() as session:
            yield EagerSession(session)

    other = copy.copy(work)
    other.open = opened  # type: ignore[method-assign] # the class is kept, which says what kind of work it is
    return other


def forcing_cost_s(entries: EntryPoints) -> Seconds:
    """What a step takes longer for being forced to run eagerly: measured on an empty function and an empty module."""
    function, module = _nothing_compiled()
    plain = _Nothing()
    stance = _stance_object()

    def taken() -> None:
        with stance:
            pass

    spent_s = _per_call(taken) - _per_call(_nothing)
    with stance:
        through_function_s = _per_call(function) - _per_call(_nothing)
        through_module_s = _per_call(module) - _per_call(plain)
    only_functions = max(0, entries.functions - entries.modules)
    return max(0.0, spent_s + only_functions * through_function_s + entries.modules * through_module_s)


def _stance_object() -> contextlib.AbstractContextManager[Any]:
    """`force_eager`, to be entered again and again; making one takes longer than entering it, and takes the stance."""
    stance: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    stance.__exit__(None, None, None)
    return stance


def _nothing_compiled() -> tuple[Any, Any]:
    return COMPILE(_nothing, backend="eager"), COMPILE(_Nothing(), backend="eager")


def _per_call(function: Callable[[], Any]) -> Seconds:
    return min(timeit.repeat(function, number=TRIALS, repeat=5)) / TRIALS


def _nothing() -> None:
    """What is timed when only its wrapper matters."""


class _Nothing(nn.Module):
    def forward(self) -> None:
        """Nothing."""
