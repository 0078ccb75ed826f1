"""A program's first steps on tensors without data: the same Python, the same operators, the same frees, no memory.

The session that runs the steps is the one that runs them for real, on doubles of the program's objects, so that
allocations and frees come in the same order.
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.memory.prediction.blocks import every
from pyrometer.memory.prediction.corrections import CpuStorages
from pyrometer.memory.prediction.doubles import Doubles
from pyrometer.memory.prediction.errors import unpredictable_told
from pyrometer.memory.prediction.forward import Forward
from pyrometer.memory.prediction.inputs import DoubledInputs, drawing
from pyrometer.memory.prediction.optimizers import optimizer_over, use_foreach
from pyrometer.memory.prediction.settings import Settings
from pyrometer.memory.prediction.sizes import BATCH, SEQUENCE
from pyrometer.memory.prediction.time_limit import ended_in_time
from pyrometer.memory.prediction.values import AssumedValues
from pyrometer.memory.prediction.workspaces import workspace_bytes
from pyrometer.memory.private.fake_tensors import FiniteScaler, fake_mode, quiet
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, Origin, PhaseEnd
from pyrometer.memory.recording.steps import record_session
from pyrometer.memory.recording.unfollowed import UNFOLLOWED, UnfollowedSavedTensorsError
from pyrometer.quantity import Bytes
from pyrometer.workload.changes.checkpointing import checkpointed
from pyrometer.workload.changes.micro_batches import Parts
from pyrometer.workload.inference import Inference, InferenceSession, devices_of
from pyrometer.workload.parts import TrainingParts
from pyrometer.workload.state import preserved_rng
from pyrometer.workload.surroundings import Surroundings, preserved_surroundings
from pyrometer.workload.training import Training, TrainingSession
from pyrometer.workload.variant import Variant
from pyrometer.workload.workload import Session, Workload


@dataclass
class Rehearsal:
    """What came of it.

    Attributes:
        log: the allocations.
        batch: size of the inputs' batch dimension; `None` without one.
        sequence: size of the sequence dimension; `None` without one.
        emulates_cuda: whether CUDA's rules were laid over the CPU's.
        notes: what was assumed.
    """

    log: AllocationLog
    batch: int | None
    sequence: int | None
    emulates_cuda: bool = False
    notes: list[str] = field(default_factory=list)


def rehearse(work: Workload, settings: Settings) -> Rehearsal:
    """Run a workload's first steps without data and record what they would allocate.

    Raises:
        InputError: the workload is of another kind, cannot be copied, or a setting cannot be followed.
        NotPredictableError: the program needs the values of tensors.
        UserProgramError: a step raised.
    """
    if not isinstance(work, (Training, Inference)):
        raise InputError(
            f"memory of a {type(work).__name__} workload cannot be predicted; give pm.Training or pm.Inference"
        )
    with preserved_surroundings() as surroundings, preserved_rng():
        own = (work.surroundings or surroundings).with_threads(work.config.threads)
        own.activate()
        try:
            return _rehearsed(_Stage(work, settings, own), saved=True)
        except UnfollowedSavedTensorsError:
            rehearsal = _rehearsed(_Stage(work, settings, own), saved=False)
            rehearsal.notes.append(UNFOLLOWED)
            return rehearsal


def _rehearsed(stage: _Stage, *, saved: bool) -> Rehearsal:
    with quiet(), unpredictable_told():
        log = stage.recorded(saved=saved)
    if not stage.emulates_cuda:
        log = with_present(log, stage.source_bytes)
    return Rehearsal(log, stage.sizes[BATCH], stage.sizes[SEQUENCE], stage.emulates_cuda, stage.notes)


def with_present(log: AllocationLog, sizes: list[Bytes]) -> AllocationLog:
    """A log with more memory that was there all the time, and that inputs are taken from."""
    shift, total = len(sizes), sum(sizes)
    if not shift:
        return log
    here = [
        Allocation(size, number, Origin("", None, None), "", phase="data", preexisting=True)
        for number, size in enumerate(sizes)
    ]
    for allocation in log.allocations:
        allocation.born += shift
        allocation.died = None if allocation.died is None else allocation.died + shift
    return AllocationLog(
        allocations=here + log.allocations,
        events=[*range(shift), *(event + shift if event >= 0 else event - shift for event in log.events)],
        phases=[PhaseEnd(phase.event + shift, phase.name, phase.step) for phase in log.phases],
        notes=log.notes,
        live_bytes=log.live_bytes + total,
        peak_bytes=log.peak_bytes + total,
        peak_event=log.peak_event + shift,
    )


class _Stage:
    """Everything that a rehearsal is played with."""

    def __init__(self, work: Training | Inference, settings: Settings, surroundings: Surroundings) -> None:
        self.settings = _with_defaults(settings, work)
        self.surroundings = surroundings
        self.notes: list[str] = []
        self._work = copy.copy(work)
        self._work.config = self._config(work.config)
        self._work.per_step, self._work.mask = 1.0, None  # counting units may need values
        home = next(iter(devices_of(_model_of(work))), torch.device("cpu"))
        target = self._target(home)
        self.emulates_cuda = self.settings.device == "cuda" and target.type == "cpu"
        self.mode = fake_mode()
        self._doubles = Doubles(
            self.mode,
            Variant(dtype=self.settings.dtype, memory_format=work.config.memory_format),
            target if target != home else None,
        )
        accumulate = work.accumulate if isinstance(work, Training) else 1
        count = self.settings.steps * (self.settings.accumulate or accumulate)
        self._parts = work.batches if isinstance(work, Training) and isinstance(work.batches, Parts) else None
        drawn = work
        if self._parts is not None:
            drawn, count = copy.copy(work), -(-count // self._parts.num_parts)
            drawn.batches = self._parts.whole  # type: ignore[union-attr]
        self._inputs = DoubledInputs(
            work, self._doubles, self.settings, draw=drawing(drawn, home), count=count, device=home
        )

    @property
    def source_bytes(self) -> list[Bytes]:
        """Memory that the inputs are taken from."""
        return self._inputs.source_bytes

    @property
    def sizes(self) -> dict[str, int | None]:
        """Of batch and sequence."""
        return self._inputs.sizes

    def recorded(self, *, saved: bool) -> AllocationLog:
        """Run the steps and record them."""
        with contextlib.ExitStack() as stack:
            session = self._session()
            stack.enter_context(self._checkpointing(session))
            stack.enter_context(ended_in_time())
            stack.enter_context(self.mode)
            stack.enter_context(AssumedValues())
            stack.enter_context(CpuStorages())
            return record_session(session, steps=self.settings.steps, saved=saved, workspace=workspace_bytes)

    def _config(self, config: Variant) -> Variant:
        amp = self.settings.amp
        changes = {"autocast": None if amp is False else amp} if amp is not None else {}
        # Sizes and dtypes are those of the doubles already; compiled code is rehearsed as it is written.
        return config.merged(
            {**changes, "dtype": None, "memory_format": None, "batch_size": None, "mode": None}
        )

    def _target(self, home: torch.device) -> torch.device:
        """Where the doubles are: on CUDA only where torch can compute there, because otherwise autograd aborts."""
        wanted = self.settings.device
        if wanted is None or wanted == home.type:
            return home
        if wanted == "cuda" and torch.cuda.is_available():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")

    def _session(self) -> Session:
        work = self._work
        if isinstance(work, Inference):
            model = self._doubles.module("model", work.model).eval()
            if self.settings.grad:
                return Forward(work, model, self._inputs, self.surroundings)
            work.inputs = self._inputs.next
            return InferenceSession(work, model, self.surroundings)
        parts = self._doubles.parts(work.parts)
        for module in parts.modules:
            module.train(self.settings.grad is not False)
        if self.settings.grad is False:
            return Forward(work, parts.model, self._inputs, self.surroundings, parts.loss)
        work.batches = self._inputs if self._parts is None else self._parts.over(self._inputs)
        work.accumulate = self.settings.accumulate or work.accumulate
        # The user's own parts stay those of the work, so that the session looks whether a step reaches them.
        return TrainingSession(work, self._with_optimizer(parts), self.surroundings)

    def _with_optimizer(self, parts: TrainingParts) -> TrainingParts:
        work, optimizer = self._work, parts.optimizer
        if self.settings.optimizer is not None:
            with self.mode:
                optimizer = optimizer_over(self.settings.optimizer, parts.trained())
        if self.settings.device == "cuda":
            use_foreach(optimizer)
        scaler = None
        if isinstance(work, Training) and work.parts.scaler is not None and work.parts.scaler.is_enabled():
            scaler = FiniteScaler(next(iter(devices_of(parts.model)), torch.device("cpu")).type)
        return parts._replace(optimizer=optimizer, scaler=scaler)

    def _checkpointing(self, session: Session) -> contextlib.AbstractContextManager[Any]:
        model = getattr(session, "model", None)
        paths = self.settings.checkpoint
        if paths is None or not isinstance(model, nn.Module):
            return contextlib.nullcontext()
        chosen = every(model, paths) if isinstance(paths, str) else list(paths)
        return checkpointed(model, dict.fromkeys(chosen, "full"))


def _with_defaults(settings: Settings, work: Workload) -> Settings:
    """A workload's own variant, where the settings say nothing else."""
    config = work.config
    return replace(settings, dtype=settings.dtype or config.dtype, batch=settings.batch or config.batch_size)


def _model_of(work: Training | Inference) -> nn.Module:
    return work.parts.model if isinstance(work, Training) else work.model
