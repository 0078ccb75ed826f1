"""What is exported, on disk: files of the runtime, and beside them what they were made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from pyrometer.record import Record, from_json, to_json
from pyrometer.tuning.levers.runtimes.exporting import Exported, export
from pyrometer.tuning.levers.runtimes.form import CallForm
from pyrometer.tuning.levers.runtimes.shapes import Shapes, TensorShape
from pyrometer.tuning.levers.subject import Subject

_PIECE_BYTES = 1 << 24


class Made(Record, frozen=True, kw_only=True):
    """From what files were made, and what they take."""

    weights: str
    made_with: str
    parameters: dict[str, str]
    shapes: list[TensorShape]


def stored(
    subject: Subject,
    name: str,
    form: CallForm,
    write: Callable[[Exported, Path], list[Path]],
    *,
    made_with: str,
    parameters: dict[str, str] | None = None,
    contiguous: bool = True,
) -> tuple[Path, Shapes]:
    """The main file of an exported model, and what it takes; written, or found ready where it was made of the same weights.

    The subject then has the files as artefacts, and knows whether its shapes are fixed.

    Args:
        subject: whose model is exported.
        name: of the lever.
        form: of a call.
        write: writes the files into a folder, the main one first.
        made_with: what wrote them, and for what machine; files made otherwise are not reused.
        parameters: of the lever.
        contiguous: whether the runtime takes only contiguous tensors.
    """
    weights, chosen = weights_hash(subject.model), parameters or {}
    files = subject.ready.get(name, [])
    made = _made(files)
    expected = [(str(tensor.dtype), tuple(tensor.shape)) for tensor in form.tensors]
    if (
        made is None
        or (made.weights, made.made_with, made.parameters) != (weights, made_with, chosen)
        or not _takes(made, expected)
    ):
        exported = export(subject, form, contiguous=contiguous)
        subject.folder.mkdir(parents=True, exist_ok=True)
        files = write(exported, subject.folder)
        made = Made(weights=weights, made_with=made_with, parameters=chosen, shapes=exported.shapes.shapes)
        files = [*files, subject.folder / f"{name}.json"]
        files[-1].write_bytes(to_json(made))
    shapes = Shapes(made.shapes)
    subject.artefacts[name] = list(files)
    subject.fixed_shapes = subject.fixed_shapes or shapes.are_fixed
    return files[0], shapes


def _made(files: list[Path]) -> Made | None:
    if not files or not all(path.is_file() for path in files):
        return None
    return from_json(Made, files[-1].read_bytes())


def _takes(made: Made, expected: list[tuple[str, tuple[int, ...]]]) -> bool:
    if len(made.shapes) != len(expected):
        return False
    return all(
        shape.dtype == dtype and shape.sizes in {sizes, (-1, *sizes[1:])}
        for shape, (dtype, sizes) in zip(made.shapes, expected, strict=True)
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
