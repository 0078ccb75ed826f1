"""What levers change: a workload that is ours to change, and what has been laid around its model."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.levers.tuned_model import ContextFactory, TensorChange, TunedModel
from pyrometer.workload.inference import Inference, devices_of, home_of
from pyrometer.workload.inputs import Arguments, argument_source
from pyrometer.workload.training import Training

_DRAWS = 4


@dataclass
class Subject:
    """A workload under change. Levers are applied to it one after another, in the order of their place.

    Attributes:
        work: an `Inference` or `Training`, whose objects belong to the subject and may be changed in place.
        folder: where a lever may write what it makes: packages, exported graphs, quantised weights.
        inputs_changed: what is done to each tensor of the inputs before the model gets it, in this order.
        outputs_changed: what is done to each tensor of the outputs.
        contexts: entered around each call of the model, in this order.
        compile_contexts: entered only around calls with shapes and dtypes that were not seen before, as settings of a compiler need.
        settings: entered around the life of the process that runs the model: threads, denormals.
        artefacts: files that belong to the changed model, by the lever that wrote them.
        ready: files that a lever wrote earlier for the very same weights, and that it may load in place of making them.
        changed: modules that a lever changed, by lever; a runtime that was made of them may have taken their place since.
        fixed_shapes: whether the changed model takes no other shapes than those of the example inputs.
    """

    work: Inference | Training
    folder: Path
    inputs_changed: list[TensorChange] = field(default_factory=list)
    outputs_changed: list[TensorChange] = field(default_factory=list)
    contexts: list[ContextFactory] = field(default_factory=list)
    compile_contexts: list[ContextFactory] = field(default_factory=list)
    settings: list[ContextFactory] = field(default_factory=list)
    artefacts: dict[str, list[Path]] = field(default_factory=dict)
    ready: dict[str, list[Path]] = field(default_factory=dict)
    changed: dict[str, list[nn.Module]] = field(default_factory=dict)
    fixed_shapes: bool = False

    @property
    def is_training(self) -> bool:
        """Whether the workload trains its model."""
        return isinstance(self.work, Training)

    @property
    def training(self) -> Training:
        """The workload, of those that train.

        Raises:
            InputError: it does not train.
        """
        if not isinstance(self.work, Training):
            raise InputError("this lever is for training, and the workload does not train")
        return self.work

    @property
    def model(self) -> nn.Module:
        """The model as it is now."""
        return self.work.parts.model if isinstance(self.work, Training) else self.work.model

    @model.setter
    def model(self, model: nn.Module) -> None:
        if isinstance(self.work, Training):
            self.work.parts = self.work.parts._replace(model=model)
        else:
            self.work.model = model

    @property
    def device(self) -> torch.device:
        """Of the model's first parameter, or of the inputs where it has none."""
        if devices := devices_of(self.model):
            return devices[0]
        tensors = [] if self.is_training else self.example().tensors()
        return tensors[0].device if tensors else torch.device("cpu")

    def example(self) -> Arguments:
        """The arguments of one call, as the model gets them now: with all changes to the inputs.

        Raises:
            InputError: the workload trains, and is fed by its batches.
        """
        return self.examples(1)[0]

    def examples(self, most: int) -> list[Arguments]:
        """The arguments of the first calls, as `example`; of one where all are the same."""
        if isinstance(self.work, Training):
            raise InputError("a training workload has batches, and no example inputs")
        source, fixed = argument_source(self.work.inputs, home_of(self.model), self.work.config)
        drawn = [source() for _ in range(1 if fixed else most)]
        for change in self.inputs_changed:
            drawn = [arguments.mapped(change) for arguments in drawn]
        return drawn

    def shapes_vary(self) -> bool:
        """Whether the first few inputs differ in their shapes."""
        calls = self.examples(_DRAWS)
        return len({tuple(tensor.shape for tensor in call.tensors()) for call in calls}) > 1

    def has(self, *kinds: type[nn.Module]) -> bool:
        """Whether the model has a module of one of these classes."""
        return any(isinstance(module, kinds) for module in self.model.modules())

    def count(self, *kinds: type[nn.Module]) -> int:
        """How many modules of these classes the model has."""
        return sum(isinstance(module, kinds) for module in self.model.modules())

    def finished(self) -> Inference | Training:
        """The workload with everything that was laid around its model; the subject is not to be changed after it."""
        work = copy.copy(self.work)
        laid_around = (self.inputs_changed, self.outputs_changed, self.contexts, self.compile_contexts)
        wrapped = TunedModel(self.model, *laid_around) if any(laid_around) else self.model
        if isinstance(work, Training):
            work.parts = work.parts._replace(model=wrapped)
        else:
            work.model = wrapped
        return work
