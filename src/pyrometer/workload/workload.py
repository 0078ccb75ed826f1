"""The common ground of all workloads: a step, a unit, and a session in which steps may be run.

A `Workload` is a description and never runs by itself. `open()` yields a `Session` in which everything is
prepared (device, mode, random state, inputs), and restores the user's objects afterwards, also on exceptions.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError, UserProgramError
from pyrometer.workload.variant import Variant

Mark: TypeAlias = Callable[[str], None]
"""Called with a phase's name when that phase ends."""


class Session(abc.ABC):
    """A workload that is ready to run; obtained from `Workload.open()`.

    `prepare` makes the arguments of one step outside of any timing; `step` is what is timed.
    """

    device: torch.device
    threads: int | None = None

    @abc.abstractmethod
    def prepare(self) -> Any:
        """Make what the next step consumes; its time does not count as step time."""

    @abc.abstractmethod
    def step(self, prepared: Any) -> Any:
        """Run one step and return its output."""

    @abc.abstractmethod
    def phased_step(self, mark: Mark) -> Any:
        """Run one step including its preparation, calling `mark(phase)` at the end of each phase."""

    @property
    @abc.abstractmethod
    def units_per_step(self) -> float:
        """Mean number of units (frames, tokens, …) that a step has processed so far."""

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding in what was processed, where the workload has a mask or lengths."""
        return None

    def activate(self) -> None:
        """Make this session's thread count current; called before each timed batch."""
        if self.threads is not None and torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)


class Workload(abc.ABC):
    """One repeatable step and what it is worth.

    Attributes:
        name: shown in reports.
        unit: what a step processes, in the plural: `samples`, `frames`, `images`, `tokens`, …
        config: how this variant differs from the workload as the user wrote it.
    """

    name: str
    unit: str
    config: Variant

    @abc.abstractmethod
    def open(self) -> contextlib.AbstractContextManager[Session]:
        """Prepare everything, yield a `Session`, and restore the user's state at the end."""

    @abc.abstractmethod
    def variant(self, **changes: Any) -> Workload:
        """Return the same work under another configuration, leaving this one and the user's objects alone.

        See `Variant` for the names and values that are accepted.
        """

    @abc.abstractmethod
    def phases(self) -> tuple[str, ...]:
        """Names of the phases that a step passes through, in order."""

    def compiled(self, mode: str = "default") -> Workload:
        """Shorthand for `variant(mode=…)`: the same work under `torch.compile`."""
        return self.variant(mode=mode)


@contextlib.contextmanager
def user_code(what: str) -> Iterator[None]:
    """Turn an exception of the user's program into a `UserProgramError` that says where it happened."""
    try:
        yield
    except (KeyboardInterrupt, UserProgramError, InputError):
        raise
    except Exception as error:
        message = f"{what} raised {type(error).__name__}: {first_line(error)}"
        raise UserProgramError(message) from error


def first_line(error: BaseException) -> str:
    """The first non-empty line of an exception's text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "(no message)"
