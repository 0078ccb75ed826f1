"""The same work without compiled code, also where the compiling is done inside of it."""

from __future__ import annotations

import contextlib
import copy
import timeit
from collections.abc import Iterator
from typing import Any, TypeVar

import torch

from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Mark, Session, Workload

W = TypeVar("W", bound=Workload)

TRIALS = 200


class EagerSession(Session):
    """A session whose steps run under the stance `force_eager`: what was or would be compiled runs as it is written.

    The stance in force is back after each step. Needs torch 2.6.

    Args:
        session: the open session; it may go on being used by itself.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session.device, session.surroundings)
        self._session = session

    def prepare(self) -> Any:
        """As the session does."""
        return self._session.prepare()

    def step(self, prepared: Any) -> Any:
        """One eager step."""
        with torch.compiler.set_stance("force_eager"):
            return self._session.step(prepared)

    def phased_step(self, mark: Mark) -> Any:
        """One eager step with its phases."""
        with torch.compiler.set_stance("force_eager"):
            return self._session.phased_step(mark)

    @property
    def units_per_step(self) -> float:
        """Of the session."""
        return self._session.units_per_step

    @property
    def padding_ratio(self) -> float | None:
        """Of the session."""
        return self._session.padding_ratio


def can_force_eager() -> bool:
    """Whether this torch has stances."""
    return hasattr(torch.compiler, "set_stance")


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


def stance_cost_s() -> Seconds:
    """What taking the stance and leaving it adds to each eager step."""

    def once() -> None:
        with torch.compiler.set_stance("force_eager"):
            pass

    return min(timeit.repeat(once, number=TRIALS, repeat=3)) / TRIALS
