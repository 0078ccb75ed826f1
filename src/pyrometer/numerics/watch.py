"""Watching the numbers of a workload's steps."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError, PyrometerError
from pyrometer.numerics.activations import ActivationWatch
from pyrometer.numerics.backward import GradientWatch
from pyrometer.numerics.casts import CastWatch
from pyrometer.numerics.comparison import precision_shift
from pyrometer.numerics.modules import ModuleWatch
from pyrometer.numerics.nonfinite import Made, StepTensors
from pyrometer.numerics.operators import Operators, Seen
from pyrometer.numerics.outputs import OutputWatch
from pyrometer.numerics.precision import PrecisionWatch
from pyrometer.numerics.private import dispatch
from pyrometer.numerics.report import NumericsReport, OutputShift
from pyrometer.numerics.tensors import memory_key
from pyrometer.quantity import Seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import TrainingSession
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.whereabouts import autograd_sequence
from pyrometer.workload.workload import Session, Workload

BUDGET_S = 30.0
COMPILED = "compiled code ran eagerly while it was watched"
NESTED = "nested tensors were not looked at: torch has no operators for the extremes of their values"


def watch_numerics(
    work: Workload,
    *,
    steps: int = 5,
    budget_s: Seconds = BUDGET_S,
    clock: Callable[[], Seconds] = time.monotonic,
) -> NumericsReport:
    """Run a few steps and look at the numbers: what is not finite, gradients, precision, casts, distributions.

    Every operator is seen by a dispatch mode, so that a step takes several times as long; what `torch.compile` made runs
    eagerly meanwhile. A model that computes in low precision is then compared with itself in float32. The user's objects,
    hooks, settings and random state are as before at the end.

    Args:
        work: what to watch.
        steps: how many steps to run.
        budget_s: no further step begins after this time; one is always run.
        clock: gives seconds.

    Raises:
        InputError: the workload cannot be prepared, or `steps` is below 1.
        UserProgramError: a step raised.

    >>> from pyrometer.workload.inference import Inference
    >>> class Halved(nn.Module):
    ...     def forward(self, x): return torch.log(x - x)
    >>> found = watch_numerics(Inference(nn.Sequential(nn.Linear(4, 4), Halved()), torch.ones(2, 4)), steps=1)
    >>> found.non_finite.kind, found.non_finite.seen_in, found.non_finite.origin.op
    ('inf', '1', 'aten::log')
    """
    if steps < 1:
        raise InputError(f"steps: got {steps!r}; it must be a whole number of at least 1")
    began = clock()
    with work.open() as session:
        session.activate()
        watch = _Watch(session)
        with watch.watching():
            for number in range(steps):
                if number and clock() - began > budget_s:
                    watch.notes.append(f"{number} of {steps} steps were watched: the time was up")
                    break
                with user_code(f"{work.name}: step {number + 1}, watched"):
                    watch.step()
        if _runs_compiled(session, work):
            watch.notes.append(COMPILED)
        report = watch.report(work)
    shift = _shift(work, report.notes) if clock() - began <= budget_s else None
    return msgspec.structs.replace(report, shift=shift)


class _Watch:
    """What is learnt from one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.notes: list[str] = [*autograd_sequence.missing(), *dispatch.missing()]
        self._training = session if isinstance(session, TrainingSession) else None
        self._tensors = StepTensors()
        self._modules = ModuleWatch(self._gave)
        self._inputs: dict[tuple[str, int], str] = {}
        self._precision = PrecisionWatch()
        self._casts = CastWatch(self._inputs)
        self._activations = ActivationWatch()
        listeners = (self._precision.saw, self._casts.saw, self._activations.saw, self._note_nested)
        self._operators = Operators(self._tensors, self._modules, listeners)
        self._outputs = OutputWatch(self._tensors)
        scaler = self._training.parts.scaler if self._training is not None else None
        self._gradients = GradientWatch(self._modules, self._tensors, scaler)
        self._know(session)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Hook into modules, optimizers and inputs; all is as before at the end."""
        hooks = [
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ends),
        ]
        self.session.inputs_seen = self._take_inputs
        try:
            with self._modules.followed():
                yield
        finally:
            self.session.inputs_seen = None
            for hook in hooks:
                hook.remove()

    def step(self) -> None:
        """Run one step and look at it."""
        self._tensors.clear()
        self._inputs.clear()
        self._operators.new_step()
        self._outputs.begin_step()
        self._gradients.begin_step()
        self._note_parameters()
        try:
            with _without_remarks_on_hooks(), self._operators:
                result = self.session.phased_step(self._mark)
        finally:
            self._operators.paused = False
        self._gradients.end_step()
        self._tensors.read()
        self._outputs.end_step(result)

    def report(self, work: Workload) -> NumericsReport:
        """Everything that was learnt."""
        num_steps = len(self._outputs.steps)
        return NumericsReport(
            name=work.name,
            kind=self._kind,
            device=self.session.device.type,
            num_steps=num_steps,
            non_finite=self._outputs.first,
            num_non_finite_steps=self._outputs.num_bad_steps,
            gradients=self._gradients.gradients(),
            scaling=self._gradients.scaling(),
            precision=self._precision.found(num_steps),
            casts=self._casts.found(),
            outputs=self._outputs.steps,
            modules=sorted(
                self._outputs.modules.values(), key=lambda module: self._modules.order(module.module)
            ),
            activations=self._activations.found(),
            notes=self.notes,
        )

    @property
    def _kind(self) -> Literal["inference", "training", "call"]:
        if self._training is not None:
            return "training"
        return "inference" if hasattr(self.session, "model") else "call"

    def _know(self, session: Session) -> None:
        model = getattr(session, "model", None)
        if isinstance(model, nn.Module):
            self._modules.know(model)
        if self._training is not None:
            if isinstance(self._training.parts.loss, nn.Module):
                self._modules.know(self._training.parts.loss, "loss")
            self._gradients.train(self._training.parts.with_gradients())

    def _note_nested(self, seen: Seen) -> None:
        if NESTED not in self.notes and any(
            isinstance(tensor, torch.Tensor) and tensor.is_nested for tensor in seen.results
        ):
            self.notes.append(NESTED)

    def _note_parameters(self) -> None:
        model = getattr(self.session, "model", None)
        own = dict(model.named_parameters()) if isinstance(model, nn.Module) else {}
        for name, tensor in {**own, **self._gradients.parameters}.items():
            self._tensors.note(tensor, Made("", "parameter", name.replace("_orig_mod.", "")))

    def _take_inputs(self, inputs: Any) -> None:
        with self._operators.resting():
            # The inputs of a model come as (args, kwargs).
            parts = inputs if self._kind == "inference" else (inputs,)
            for path, leaf in (pair for part in parts for pair in _named_tensors(part)):
                self._inputs[memory_key(leaf)] = path
                self._tensors.note(leaf, Made("", "input", path))

    def _gave(self, path: str, module: nn.Module, output: Any) -> None:
        with self._operators.resting():
            self._outputs.gave(path, module, output)

    def _mark(self, phase: str) -> None:
        if phase == "backward" and self._training is not None:
            self._read_gradients()

    def _optimizer_begins(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        if self._training is None:
            self._gradients.train(tensor for group in optimizer.param_groups for tensor in group["params"])
            self._read_gradients()
        self._operators.paused = True

    def _optimizer_ends(self, _optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        self._operators.paused = False

    def _read_gradients(self) -> None:
        with self._operators.resting():
            self._gradients.read()


@contextlib.contextmanager
def _without_remarks_on_hooks() -> Iterator[None]:
    """What `torch.compile` made warns of hooks on modules, although it runs eagerly under a dispatch mode."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global hooks")
        yield


def _named_tensors(inputs: Any) -> list[tuple[str, torch.Tensor]]:
    """The tensors of inputs with where they stand, such as `1` or `labels`."""
    found = []
    for path, leaf in pytree.tree_flatten_with_path(inputs)[0]:
        inside = {"": leaf} if isinstance(leaf, torch.Tensor) else getattr(leaf, "__dict__", {})
        for name, value in inside.items():
            if (
                isinstance(value, torch.Tensor)
                and value.layout == torch.strided
                and value.device.type != "meta"
            ):
                found.append((".".join([*(_key(part) for part in path), *([name] if name else [])]), value))
    return found


def _key(part: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)


def _runs_compiled(session: Session, work: Workload) -> bool:
    model = getattr(session, "model", None)
    compiled = isinstance(model, nn.Module) and any(is_compiled(part) for part in model.modules())
    return compiled or work.config.mode not in {None, "eager"}


def _shift(work: Workload, notes: list[str]) -> OutputShift | None:
    if not isinstance(work, Inference):
        return None
    try:
        return precision_shift(work)
    except PyrometerError as error:
        notes.append(f"not compared with float32: {error}")
        return None
