"""Any Python callable as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.counting import legal_count
from pyrometer.workload.inputs import fresh_copies
from pyrometer.workload.surroundings import Surroundings
from pyrometer.workload.variant import Variant, compiled
from pyrometer.workload.workload import Mark, Session, Workload


class Call(Workload):
    """One call of a function with fixed arguments; grad mode and everything else are the caller's.

    Args:
        function: what to call.
        args: its positional arguments.
        unit: what a call processes, in the plural.
        per_step: units per call.
        name: shown in reports; by default the function's.
        device: where its work runs, and so which clock times it.

    >>> work = Call(sorted, [3, 1, 2])
    >>> with work.open() as session:
    ...     session.step(session.prepare())
    [1, 2, 3]
    """

    unsupported = frozenset({"dtype", "autocast", "memory_format", "batch_size"})

    def __init__(
        self,
        function: Callable[..., Any],
        *args: Any,
        unit: str = "calls",
        per_step: float = 1.0,
        name: str | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        if not callable(function):
            raise InputError(f"function: got {type(function).__name__}; it must be callable")
        self.function = function
        self.args = args
        self.unit = unit
        self.per_step = legal_count(per_step)
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.device = torch.device(device)
        self.config = Variant()

    def phases(self) -> tuple[str, ...]:
        """`call`."""
        return ("call",)

    def snapshot_bytes(self) -> Bytes:
        """None: what a function changes beside torch's settings and the random state is its own."""
        return 0

    @contextlib.contextmanager
    def open(self) -> Iterator[CallSession]:
        """Restore torch's settings and the random state at the end."""
        with self._entered() as surroundings:
            yield CallSession(self, surroundings)


class CallSession(Session):
    """An opened `Call`."""

    may_load_ahead = False

    def __init__(self, work: Call, surroundings: Surroundings) -> None:
        super().__init__(work.device, surroundings)
        mode = work.config.mode
        self._function = work.function if mode in {None, "eager"} else compiled(work.function, str(mode))
        self._args = work.args
        self._per_step = work.per_step

    def prepare(self) -> tuple[Any, ...]:
        """The arguments, which are the same for each call."""
        return self._args

    def afresh(self, prepared: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Copies of the arguments."""
        copies: tuple[Any, ...] | None = fresh_copies(prepared)
        return copies

    def step(self, prepared: tuple[Any, ...] | None = None) -> Any:
        """One call."""
        return self._function(*(self._args if prepared is None else prepared))

    def phased_step(self, mark: Mark) -> Any:
        """One call, which is all there is."""
        if self.inputs_seen is not None:
            self.inputs_seen(self._args)
        output = self._function(*self._args)
        mark("call")
        return output

    @property
    def units_per_step(self) -> float:
        """As given."""
        return self._per_step
