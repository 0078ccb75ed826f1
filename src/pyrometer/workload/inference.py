"""A forward pass as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.workload.counting import MaskSource, UnitCount, UnitCounter
from pyrometer.workload.failure import user_code
from pyrometer.workload.inputs import Arguments, argument_source, fresh_copies
from pyrometer.workload.parts import copied_module, is_lazy
from pyrometer.workload.state import inference_mode, module_tensors, preserved_module, tensor_bytes
from pyrometer.workload.surroundings import Surroundings
from pyrometer.workload.variant import Variant
from pyrometer.workload.workload import Mark, Session, Workload


class Inference(Workload):
    """A model's forward pass in eval mode, under `torch.inference_mode`.

    Args:
        model: the module; it is left as it was, also its train/eval mode and its buffers.
        inputs: a tensor, a tuple of arguments, a dict of keyword arguments, a callable that returns fresh inputs
            for each step, or a list of shapes that are used in turn.
        unit: what a step processes, in the plural.
        per_step: units per step: a number or a function of the step's inputs; by default the leading dimension of the
            first tensor.
        mask: where the padding mask or the lengths are (keyword, position or function): throughput then counts
            effective units and the padding ratio is reported beside.
        deadline_s: the time within which a step must be done, if there is one.
        name: shown in reports; by default the class of the model.

    Raises:
        InputError: the model is no module, or the inputs have no legal form, or lie on another device than the model.

    >>> work = Inference(nn.Linear(4, 2), torch.randn(8, 4))
    >>> with work.open() as session:
    ...     session.step(session.prepare()).shape
    torch.Size([8, 2])
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        unit: str = "samples",
        per_step: UnitCount | None = None,
        *,
        mask: MaskSource | None = None,
        deadline_s: float | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InputError(f"model: got {type(model).__name__}; it must be a torch.nn.Module")
        self.model = model
        self.inputs = inputs
        self.unit = unit
        self.per_step = per_step
        self.mask = mask
        self.deadline_s = deadline_s
        self.name = name or type(getattr(model, "_orig_mod", model)).__name__
        self.config = Variant()

    def phases(self) -> tuple[str, ...]:
        """`data` (making the inputs, where they are fresh) and `forward`."""
        return ("data", "forward")

    def snapshot_bytes(self) -> Bytes:
        """The buffers; the whole model where the variant needs a copy of it."""
        return tensor_bytes(module_tensors(self.model, parameters=self._needs_copy()))

    @contextlib.contextmanager
    def open(self) -> Iterator[InferenceSession]:
        """Put the model in eval mode, make the inputs, and restore everything at the end.

        The session runs the user's own model; a copy where dtype or memory format change, or where the first call
        would give lazy parameters their shapes for good.
        """
        with self._entered() as surroundings, contextlib.ExitStack() as stack:
            model = self.model
            if self._needs_copy():
                model = copied_module("model", model)
                self.config.convert(model)
            else:
                stack.enter_context(preserved_module(model, parameters=False))
            # An exported program's module cannot be switched, and need not be.
            if any(part.training for part in model.modules()):
                model.eval()
            yield InferenceSession(self, model, surroundings)

    def _needs_copy(self) -> bool:
        return self.config.changes_parameters or is_lazy(self.model)


class InferenceSession(Session):
    """An opened `Inference`."""

    def __init__(self, work: Inference, model: nn.Module, surroundings: Surroundings) -> None:
        self.model = work.config.compile_model(model)
        devices = devices_of(model)
        with user_code("making the inputs"):
            home = devices[0] if devices else torch.device("cpu")
            self._source, self._fixed = argument_source(work.inputs, home, work.config)
            self._first: Arguments | None = self._source()
        self.may_load_ahead = not self._fixed
        super().__init__(_common_device(devices, self._first), surroundings)
        self._autocast = work.config.autocast_context(self.device)
        self._counter = UnitCounter(work.per_step, work.mask)
        self._counter.note(self._first)
        self._counter.count()

    def prepare(self) -> Arguments:
        """The arguments of the next step."""
        if self._first is not None:
            first = self._first
            if not self._fixed:
                self._first = None
            return first
        self._counter.count()
        arguments = self._source()
        self._counter.note(arguments)
        return arguments

    def afresh(self, prepared: Arguments) -> Arguments | None:
        """Copies of inputs that are the same in each step."""
        if not self._fixed:
            return None
        copies = fresh_copies((prepared.args, prepared.kwargs))
        return None if copies is None else prepared._replace(args=copies[0], kwargs=copies[1])

    def step(self, prepared: Arguments) -> Any:
        """One forward pass."""
        with inference_mode(True):
            if self._autocast is None:
                return self.model(*prepared.args, **prepared.kwargs)
            with self._autocast:
                return self.model(*prepared.args, **prepared.kwargs)

    def phased_step(self, mark: Mark) -> Any:
        """Make the inputs, then the forward pass."""
        prepared = self.prepare()
        mark("data")
        if self.inputs_seen is not None:
            self.inputs_seen((prepared.args, prepared.kwargs))
        output = self.step(prepared)
        mark("forward")
        self._counter.count()
        return output

    @property
    def units_per_step(self) -> float:
        """Mean units per step so far."""
        return self._counter.units_per_step

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far, with a mask."""
        return self._counter.padding_ratio


def devices_of(module: nn.Module) -> list[torch.device]:
    """The devices of a module's parameters and buffers, each once, the first parameter's first."""
    tensors = [*module.parameters(), *module.buffers()]
    return list(dict.fromkeys(tensor.device for tensor in tensors))


def home_of(module: nn.Module) -> torch.device:
    """Where a module's first parameter or buffer is; the CPU where it has none."""
    return next(iter(devices_of(module)), torch.device("cpu"))


def _common_device(devices: list[torch.device], inputs: Arguments) -> torch.device:
    """The device that model and inputs share; some inputs (lengths, scalars) may well lie on the CPU.

    Raises:
        InputError: none of the inputs is on a device of the model's.
    """
    given = list(dict.fromkeys(tensor.device for tensor in inputs.tensors()))
    if not devices:
        return given[0] if given else torch.device("cpu")
    if given and not any(device in devices for device in given):
        places = ", ".join(str(device) for device in given)
        raise InputError(
            f"inputs on {places} but the model on {devices[0]}; move them in the factory: x.to({str(devices[0])!r})"
        )
    return devices[0]
