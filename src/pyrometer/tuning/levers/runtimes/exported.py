"""What levers have in common that export a model and let another runtime compute it from files."""

from __future__ import annotations

import abc
import functools
import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from pyrometer.record import Record, from_json, to_json
from pyrometer.tuning.levers.lever import Executor, Parameters
from pyrometer.tuning.levers.runtimes.exporting import EXPORTER, Exported, export, form_of
from pyrometer.tuning.levers.runtimes.form import CallForm, Run, RuntimeModel
from pyrometer.tuning.levers.runtimes.shapes import Shapes, TensorShape
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled

_PIECE_BYTES = 1 << 24


class Made(Record, frozen=True, kw_only=True):
    """From what files were made, and what they take; it lies beside them."""

    weights: str
    made_with: str
    parameters: dict[str, Any]
    shapes: list[TensorShape]


class ExportedRuntime(Executor):
    """Writes files of an exported model, or finds them ready where they were made of the same weights.

    Attributes:
        contiguous: whether the runtime takes only contiguous tensors.
        any_batch: whether it takes a batch of another size than the one that the model was exported with.
        dtypes: of parameters that it computes with, on a CPU; `None` where it takes whatever torch takes.
    """

    stage = "deploy"
    converters = frozenset({EXPORTER})
    contiguous: ClassVar[bool] = True
    any_batch: ClassVar[bool] = True
    dtypes: ClassVar[Collection[torch.dtype] | None] = None

    @abc.abstractmethod
    def made_with(self) -> str:
        """What writes the files, and for what machine; files made otherwise are not reused."""

    @abc.abstractmethod
    def write(self, exported: Exported, folder: Path, parameters: Parameters) -> list[Path]:
        """Write the files into a folder, the main one first."""

    @abc.abstractmethod
    def opened(self, path: Path) -> tuple[Run, Any]:
        """How the main file computes, and what the runtime made of it."""

    def refuses(self, subject: Subject) -> str | None:
        """Models that torch can export, of dtypes that the runtime computes with."""
        if any(is_compiled(module) for module in subject.model.modules()):
            return "the model comes compiled"
        if self.dtypes is None:
            return None
        if subject.device.type != "cpu":
            return f"the work is on {subject.device.type}; this runtime is used on CPUs only"
        tensors = [*subject.model.parameters(), *subject.example().tensors()]
        others = {tensor.dtype for tensor in tensors if tensor.is_floating_point()} - set(self.dtypes)
        if others:
            return f"the model computes in {min(map(str, others))}, which this runtime does not on a CPU"
        return None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Export where no files are ready; the runtime is opened at the first call."""
        form, files = form_of(subject), subject.ready.get(self.name, [])
        sources: dict[str, Any] = {
            "weights": weights_hash(subject.model),
            "made_with": self.made_with(),
            "parameters": dict(parameters),
        }
        made = _made(files)
        if (
            made is None
            or any(getattr(made, name) != value for name, value in sources.items())
            or not _takes(made, form)
        ):
            exported = export(subject, form, contiguous=self.contiguous, any_batch=self.any_batch)
            subject.folder.mkdir(parents=True, exist_ok=True)
            made = Made(**sources, shapes=exported.shapes.shapes)
            files = [*self.write(exported, subject.folder, parameters), subject.folder / f"{self.name}.json"]
            files[-1].write_bytes(to_json(made))
        shapes = Shapes(made.shapes)
        subject.artefacts[self.name] = list(files)
        subject.fixed_shapes = subject.fixed_shapes or shapes.are_fixed
        subject.model = RuntimeModel(form, shapes, functools.partial(self.opened, files[0]))


def _made(files: list[Path]) -> Made | None:
    if not files or not all(path.is_file() for path in files):
        return None
    return from_json(Made, files[-1].read_bytes())


def _takes(made: Made, form: CallForm) -> bool:
    """Whether files take such inputs, but for the size of the batch."""
    return len(made.shapes) == len(form.tensors) and all(
        shape.dtype == str(tensor.dtype) and shape.sizes in {tensor.shape, (-1, *tensor.shape[1:])}
        for shape, tensor in zip(made.shapes, form.tensors, strict=True)
    )


def weights_hash(model: nn.Module) -> str:
    """Hash of what an exported model is made of: its modules, and names, layouts and bytes of parameters and buffers."""
    digest = hashlib.sha256(repr(model).encode())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}".encode())
        flat = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
        for begin in range(0, flat.numel(), _PIECE_BYTES):
            digest.update(flat[begin : begin + _PIECE_BYTES].numpy().data)
    return digest.hexdigest()
