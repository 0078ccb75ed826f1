"""What allocations were for, as far as a snapshot lets us tell.

Rules, first match wins; an allocation that none fits is `unknown`:

1. The file says so: events made by torch's profiler carry a category.
2. The C++ stack holds `getCUDABlasLtWorkspace`, `getWorkspace` or the like: `workspace`.
3. Made under an optimizer's `step` (a frame of torch/optim): `optimizer` when made by `_init_group`, or when still there
   after the next allocation outside of the optimizer, or at the end; else `temporaries`.
4. Made in a backward pass (an autograd node, or the engine, on the C++ stack): `gradients` when made by `AccumulateGrad`,
   or when still there after the next allocation outside of the backward pass, or at the end; else `temporaries`.
5. Made by a module's constructor, or while a model was moved (`Module._apply`): `parameters`.
6. Made while batches were put together (a frame of torch/utils/data): `inputs`.
7. Made in a module's forward pass: `activations` when still there at the next allocation of a backward pass, else
   `temporaries`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.snapshots.lifetimes import BEFORE, Lifetimes
from pyrometer.memory.snapshots.sites import is_python
from pyrometer.memory.snapshots.snapshot import Frame, Ints, Snapshot

_FROM_PROFILER: dict[str, str] = {
    "input": "inputs",
    "temporary": "temporaries",
    "activation": "activations",
    "gradient": "gradients",
    "autograd_detail": "activations",
    "parameter": "parameters",
    "optimizer_state": "optimizer",
}
_WORKSPACE = re.compile(r"[wW]orkspace|cublasLt|chooseSolution|cudnn_find|get_cudnn_plan")
_BACKWARD = re.compile(
    r"torch::autograd::Engine|Backward\d*(::|$|\()|AccumulateGrad|torch::autograd::python::PythonEngine"
)
_ACCUMULATE = re.compile(r"AccumulateGrad")
_OPTIMIZER = re.compile(r"(^|/)torch/optim/")
_NN = re.compile(r"(^|/)torch/nn/modules/")
_DATA = re.compile(r"(^|/)torch/utils/data/")
_FORWARD = {"_call_impl", "_wrapped_call_impl", "forward"}
_ENGINE = re.compile(r"(^|/)torch/autograd/(graph|__init__)\.py|(^|/)torch/_tensor\.py")


class Trait(enum.IntEnum):
    """What a stack tells; the higher, the earlier it is asked."""

    NONE = 0
    FORWARD = 1
    DATA = 2
    PARAMETER = 3
    BACKWARD = 4
    ACCUMULATE = 5
    OPTIMIZER = 6
    OPTIMIZER_STATE = 7
    WORKSPACE = 8


_NATIVE = (
    (_WORKSPACE, Trait.WORKSPACE),
    (_ACCUMULATE, Trait.ACCUMULATE),
    (_BACKWARD, Trait.BACKWARD),
)
PHASES = ("other", "forward", "backward", "optimizer")
_PHASE = {
    Trait.FORWARD: 1,
    Trait.BACKWARD: 2,
    Trait.ACCUMULATE: 2,
    Trait.OPTIMIZER: 3,
    Trait.OPTIMIZER_STATE: 3,
}
_PHASE_OF = np.array([_PHASE.get(trait, 0) for trait in Trait], np.int8)


@dataclass(frozen=True)
class Categories:
    """One per allocation, and one phase per event."""

    of: npt.NDArray[np.int8]
    """Number in `CATEGORIES`."""
    phase: npt.NDArray[np.int8]
    """Number in `PHASES`, of each event; events without a telling stack continue the phase before."""


def trait(frames: list[Frame]) -> Trait:
    """What a stack tells of what was going on."""
    return max((_frame_trait(frame) for frame in frames), default=Trait.NONE)


def _frame_trait(frame: Frame) -> Trait:
    if not is_python(frame):
        return next((one for pattern, one in _NATIVE if pattern.search(frame.name)), Trait.NONE)
    if _OPTIMIZER.search(frame.file):
        return Trait.OPTIMIZER_STATE if frame.name == "_init_group" else Trait.OPTIMIZER
    if _NN.search(frame.file):
        return _module_trait(frame)
    if _ENGINE.search(frame.file) and "backward" in frame.name:
        return Trait.BACKWARD
    rest = Trait.FORWARD if frame.name == "forward" else Trait.NONE
    return Trait.DATA if _DATA.search(frame.file) else rest


def _module_trait(frame: Frame) -> Trait:
    if frame.name in {"__init__", "_apply", "convert", "reset_parameters"}:
        return Trait.PARAMETER
    return Trait.FORWARD if frame.name in _FORWARD else Trait.NONE


def categorise(
    snapshot: Snapshot,
    lifetimes: Lifetimes,
    stack_of_event: npt.NDArray[np.int32],
    last_failure: int = BEFORE,
) -> Categories:
    """Apply the rules to all allocations.

    Args:
        snapshot: for stacks and labels.
        lifetimes: of one device.
        stack_of_event: of each event of that device.
        last_failure: event of the last request that failed: what is there then may be in the midst of being used.
    """
    traits = np.array([trait([snapshot.frames[i] for i in stack]) for stack in snapshot.stacks], np.int8)
    phase = _phases(traits, lifetimes, stack_of_event)
    mine = traits[lifetimes.stack]
    later_other = {kind: _next_unlike(lifetimes, phase, kind) for kind in (2, 3)}
    next_backward = _next_like(lifetimes, phase, 2)
    settled = (lifetimes.made > last_failure) | (lifetimes.made == BEFORE)
    lives = (lifetimes.freed >= lifetimes.num_events) & settled
    stays = np.where(
        lives, lifetimes.num_events + 2, lifetimes.freed
    )  # also where the file ends in this phase
    rules: list[tuple[npt.NDArray[np.bool_], str]] = [
        (mine == Trait.WORKSPACE, "workspace"),
        (mine == Trait.OPTIMIZER_STATE, "optimizer"),
        ((mine == Trait.OPTIMIZER) & (stays > later_other[3]), "optimizer"),
        (mine == Trait.OPTIMIZER, "temporaries"),
        (mine == Trait.ACCUMULATE, "gradients"),
        ((mine == Trait.BACKWARD) & (stays > later_other[2]), "gradients"),
        (mine == Trait.BACKWARD, "temporaries"),
        (mine == Trait.PARAMETER, "parameters"),
        (mine == Trait.DATA, "inputs"),
        ((mine == Trait.FORWARD) & (lifetimes.freed > next_backward), "activations"),
        (mine == Trait.FORWARD, "temporaries"),
    ]
    order: tuple[str, ...] = CATEGORIES
    of = np.full(len(lifetimes), order.index("unknown"), np.int8)
    for which, name in reversed(rules):
        of[which] = order.index(name)
    return Categories(_from_file(snapshot, lifetimes, of), phase)


def _from_file(snapshot: Snapshot, lifetimes: Lifetimes, of: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    order: tuple[str, ...] = CATEGORIES
    names = [_FROM_PROFILER.get(label) for label in snapshot.labels]
    numbers = np.array([-1 if name is None else order.index(name) for name in names] + [-1], np.int8)
    number = numbers[lifetimes.category]
    return np.where(number >= 0, number, of).astype(np.int8)


def _phases(
    traits: npt.NDArray[np.int8], lifetimes: Lifetimes, stack_of_event: npt.NDArray[np.int32]
) -> npt.NDArray[np.int8]:
    """Phase of each event: that of the last allocation whose stack tells one."""
    made = lifetimes.made[lifetimes.made != BEFORE]
    own = np.zeros(lifetimes.num_events, np.int8)
    own[made] = _PHASE_OF[traits[stack_of_event[made]]]
    telling = np.zeros(lifetimes.num_events, np.int64)
    telling[made] = np.where(own[made] > 0, made, 0)
    return own[np.maximum.accumulate(telling)] if len(own) else own


def _next_unlike(lifetimes: Lifetimes, phase: npt.NDArray[np.int8], kind: int) -> Ints:
    """For each allocation, the next event of another phase; beyond the end when there is none."""
    return _next(lifetimes, (phase != kind) & (phase > 0))


def _next_like(lifetimes: Lifetimes, phase: npt.NDArray[np.int8], kind: int) -> Ints:
    """For each allocation, the next event of a phase; beyond the end when there is none."""
    return _next(lifetimes, phase == kind)


def _next(lifetimes: Lifetimes, which: npt.NDArray[np.bool_]) -> Ints:
    never = lifetimes.num_events + 1
    at = np.full(lifetimes.num_events + 1, never, np.int64)
    at[:-1][which] = np.flatnonzero(which)
    following = np.minimum.accumulate(at[::-1])[::-1]
    return following[np.clip(lifetimes.made, 0, lifetimes.num_events)]
