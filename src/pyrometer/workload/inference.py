"""A forward pass as a workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.counting import MaskSource, UnitCount, UnitCounter
from pyrometer.workload.inputs import Arguments, ArgumentSource, argument_source
from pyrometer.workload.state import preserved_globals, preserved_module, preserved_rng
from pyrometer.workload.variant import DTYPES, Variant
from pyrometer.workload.workload import Mark, Session, Workload, user_code


class Inference(Workload):
    """A model's forward pass in eval mode, under `torch.inference_mode`.

    Args:
        model: the module; it is left as it was, also its train/eval mode and its buffers.
        inputs: a tensor, a tuple of arguments, a dict of keyword arguments, a callable that returns fresh inputs
            for each step, or a list of shapes that are used in turn.
        unit: what a step processes, in the plural.
        per_step: units per step: a number or a function of the inputs; by default the leading dimension of the
            first tensor.
        mask: where the padding mask or the lengths are (keyword, position or function): throughput then counts
            effective units and the padding ratio is reported beside.
        deadline_s: the time within which a step must be done, if there is one.
        name: shown in reports; by default the class of the model.

    Raises:
        InputError: the inputs have no legal form, or lie on another device than the model.

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
        self.name = name or type(model).__name__
        self.config = Variant()

    def variant(self, **changes: Any) -> Inference:
        """The same forward pass under another configuration; the model is copied only where it must change."""
        other = Inference(
            self.model,
            self.inputs,
            self.unit,
            self.per_step,
            mask=self.mask,
            deadline_s=self.deadline_s,
            name=self.name,
        )
        other.config = self.config.merged(changes)
        return other

    def phases(self) -> tuple[str, ...]:
        """`data` (making the inputs, where they are fresh) and `forward`."""
        return ("data", "forward")

    @contextlib.contextmanager
    def open(self) -> Iterator[InferenceSession]:
        """Put the model in eval mode, make the inputs, and restore everything at the end."""
        with preserved_globals(), preserved_rng(), preserved_module(self.model, parameters=False):
            self.model.eval()
            device = device_of(self.model)
            with user_code("moving the model to the variant"):
                model = self.config.apply_to_model(self.model)
            source, fixed = argument_source(self.inputs, device, self.config)
            session = InferenceSession(model, source, UnitCounter(self.per_step, self.mask))
            session.fixed = fixed
            session.device = device
            session.threads = self.config.threads or torch.get_num_threads()
            session.autocast = DTYPES[self.config.autocast] if self.config.autocast else None
            session.check_devices()
            with torch.inference_mode():
                yield session


class InferenceSession(Session):
    """An opened `Inference`."""

    fixed: bool = True
    autocast: torch.dtype | None = None

    def __init__(self, model: nn.Module, source: ArgumentSource, counter: UnitCounter) -> None:
        self.model = model
        self._source = source
        self._counter = counter
        with user_code("making the inputs"):
            self._first: Arguments | None = source()
        counter.add(self._first)

    def check_devices(self) -> None:
        """Refuse inputs that lie on another device than the model."""
        assert self._first is not None
        devices = {t.device for t in self._first.tensors()}
        others = sorted(str(d) for d in devices if d.type != self.device.type)
        if others:
            raise InputError(
                f"inputs on {', '.join(others)} but the model on {self.device}; "
                f"move them in the factory, for example x.to({str(self.device)!r})"
            )

    def prepare(self) -> Arguments:
        """The arguments of the next step."""
        if self._first is not None:
            first = self._first
            if not self.fixed:
                self._first = None
            return first
        arguments = self._source()
        self._counter.add(arguments)
        return arguments

    def step(self, prepared: Arguments) -> Any:
        """One forward pass."""
        if self.autocast is None:
            return self.model(*prepared.args, **prepared.kwargs)
        with torch.autocast(self.device.type, dtype=self.autocast):
            return self.model(*prepared.args, **prepared.kwargs)

    def phased_step(self, mark: Mark) -> Any:
        """Make the inputs, then the forward pass."""
        prepared = self.prepare()
        mark("data")
        output = self.step(prepared)
        mark("forward")
        return output

    @property
    def units_per_step(self) -> float:
        """Mean units per step so far."""
        return self._counter.units_per_step

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far, with a mask."""
        return self._counter.padding_ratio


def device_of(model: nn.Module) -> torch.device:
    """The device of a module's first parameter or buffer; the CPU when it has none."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")
