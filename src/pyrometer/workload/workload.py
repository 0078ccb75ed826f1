"""The common ground of all workloads: a step, a unit, and a session in which steps may be run.

A `Workload` is a description and never runs by itself. `open()` yields a `Session` in which everything is
prepared (device, mode, random state, inputs), and restores the user's objects afterwards, also on exceptions.

Several sessions may be open at once and stepped in turn, also of the same workload and of workloads over the same
model. Nothing that a session needs is held across a `yield`: grad and inference mode are entered in each step, global
settings and imports by `activate()`. A `Training` session works on the user's own objects; while it is open, further
sessions over the same model work on copies. Sessions are closed in the reverse order of opening (`ExitStack`).
"""

from __future__ import annotations

import abc
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.surroundings import Surroundings, preserved_surroundings
from pyrometer.workload.variant import Variant

Mark: TypeAlias = Callable[[str], None]
"""Called with a phase's name when that phase ends."""


class Session(abc.ABC):
    """A workload that is ready to run; obtained from `Workload.open()`.

    `prepare` makes the arguments of one step outside of any timing; `step` is what is timed, and raises whatever the
    user's program raises.

    Attributes:
        device: where the steps run.
        surroundings: global settings and imports that the steps need.
        may_load_ahead: whether threads may rightly work on inputs of the next steps when a step has returned.
        inputs_seen: called by `phased_step` with the inputs of the step, before it computes with them.
    """

    may_load_ahead = True

    def __init__(self, device: torch.device, surroundings: Surroundings) -> None:
        self.device = device
        self.surroundings = surroundings
        self.inputs_seen: Callable[[Any], None] | None = None

    @abc.abstractmethod
    def prepare(self) -> Any:
        """Make what the next step consumes; its time does not count as step time."""

    @abc.abstractmethod
    def step(self, prepared: Any) -> Any:
        """Run one step and return its output."""

    @abc.abstractmethod
    def phased_step(self, mark: Mark) -> Any:
        """Run one step including its preparation, calling `mark(phase)` at the end of each phase."""

    def afresh(self, prepared: Any) -> Any | None:  # noqa: ARG002
        """What a step consumes, equal and made of new tensors; `None` where there are none, or each step has its own anyway."""
        return None

    @property
    @abc.abstractmethod
    def units_per_step(self) -> float:
        """Mean number of units (frames, tokens, …) that a step has processed so far."""

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding in what was processed, where the workload has a mask or lengths."""
        return None

    @property
    def threads(self) -> int:
        """Intra-op threads that the steps run with."""
        return self.surroundings.settings.threads

    def activate(self) -> None:
        """Make this session's settings and imports current; to be called before `prepare` when sessions take turns."""
        self.surroundings.activate()


class Workload(abc.ABC):
    """One repeatable step and what it is worth.

    Attributes:
        name: shown in reports.
        unit: what a step processes, in the plural: `samples`, `frames`, `images`, `tokens`, …
        config: how this variant differs from the workload as the user wrote it.
        surroundings: settings and imports of the target that it was loaded from; `None` takes what is in force.
    """

    name: str
    unit: str
    config: Variant
    surroundings: Surroundings | None = None

    unsupported: frozenset[str] = frozenset()
    """Settings of `Variant` that make no sense for this kind of workload."""

    @abc.abstractmethod
    def open(self) -> contextlib.AbstractContextManager[Session]:
        """Prepare everything, yield a `Session`, and restore the user's state at the end."""

    @abc.abstractmethod
    def phases(self) -> tuple[str, ...]:
        """Names of the phases that a step passes through, in order."""

    @abc.abstractmethod
    def snapshot_bytes(self) -> Bytes:
        """Memory that an open session takes to be able to restore the user's state, or for its own copy."""

    def variant(self, **changes: Any) -> Self:
        """Return the same work under another configuration, leaving this one and the user's objects alone.

        See `Variant` for the names and values that are accepted.

        Raises:
            InputError: an unknown name, an illegal value, or a setting that this kind of workload does not have.
        """
        refused = sorted(self.unsupported.intersection(changes))
        if refused:
            legal = ", ".join(name for name in Variant.__struct_fields__ if name not in self.unsupported)
            raise InputError(
                f"{refused[0]}: not a setting of a {type(self).__name__} workload; legal are {legal}"
            )
        other = copy.copy(self)
        other.config = self.config.merged(changes)
        return other

    def compiled(self, mode: str = "default") -> Self:
        """Shorthand for `variant(mode=…)`: the same work under `torch.compile`."""
        return self.variant(mode=mode)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[Surroundings]:
        """The frame of every `open`: make the settings and imports current, and restore them and the random state."""
        with preserved_surroundings() as surroundings, preserved_rng():
            own = (self.surroundings or surroundings).with_threads(self.config.threads)
            own.activate()
            yield own


def require_workload(work: object) -> None:
    """Refuse what cannot be run step by step.

    Raises:
        InputError: it is no workload.
    """
    if not isinstance(work, Workload):
        raise InputError(
            f"work: got {type(work).__name__}; it must be a workload: pm.Inference(model, inputs), "
            "pm.Training(model, loss, optimizer, batches) or pm.Call(function, …)"
        )
