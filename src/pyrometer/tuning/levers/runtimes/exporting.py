"""`torch.export` of a subject's model, with a batch of any size where the model allows that."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import is_concrete_int

from pyrometer.errors import UserProgramError
from pyrometer.tuning.levers.lever import CANNOT_TAKE
from pyrometer.tuning.levers.runtimes.form import CallForm, FlatModel
from pyrometer.tuning.levers.runtimes.shapes import Shapes, TensorShape
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.failure import first_line
from pyrometer.workload.inputs import leading_dimension

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SENTENCE = 300

EXPORTER = "torch.export"


class Exported(NamedTuple):
    """An exported model."""

    program: ExportedProgram
    shapes: Shapes


def form_of(subject: Subject) -> CallForm:
    """The form of a call, from one call on the example inputs."""
    example = subject.example()
    with torch.no_grad():
        output = subject.model(*example.args, **example.kwargs)
    return CallForm(subject.model, example, output)


def export(subject: Subject, form: CallForm, *, contiguous: bool, any_batch: bool = True) -> Exported:
    """Export a model, for a batch of any size where that is asked for and the model allows it.

    A batch of one would be taken for a constant, so it is exported with two samples where the model computes that.

    Raises:
        UserProgramError: the model cannot be exported; the first line of what torch says.
    """
    batch = leading_dimension(subject.example()) if any_batch else None
    shares = [batch is not None and t.dim() > 0 and t.shape[0] == batch for t in form.tensors]
    examples = [form.tensors]
    if batch == 1:
        doubled = [torch.cat([t, t]) if shared else t for t, shared in zip(form.tensors, shares, strict=True)]
        examples.insert(0, doubled)
    model = FlatModel(subject.model, form).eval()
    for tensors in examples:
        dynamic = tuple({0: Dim.AUTO} if shared else None for shared in shares)
        last = tensors is examples[-1]  # what two samples cannot do, the one that was given may
        with library(EXPORTER) if last else contextlib.suppress(Exception), torch.no_grad():
            program = torch.export.export(model, tuple(tensors), dynamic_shapes=(dynamic,))
            return Exported(program, _shapes(program, tensors, contiguous=contiguous))
    raise AssertionError("the last example returns or raises")


def _shapes(program: ExportedProgram, tensors: list[torch.Tensor], *, contiguous: bool) -> Shapes:
    names = program.graph_signature.user_inputs
    nodes: dict[str, Any] = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    sizes = [nodes[name].meta["val"].shape for name in names if isinstance(name, str)]
    return Shapes(
        [
            TensorShape.of(tensor, varies=bool(size) and not is_concrete_int(size[0]), contiguous=contiguous)
            for tensor, size in zip(tensors, sizes, strict=True)
        ]
    )


@contextlib.contextmanager
def library(name: str) -> Iterator[None]:
    r"""Say in one line what a library could not do; its warnings to developers are not the user's.

    >>> with library("torch.export"):
    ...     raise ValueError("no such operator\n(200 lines)")
    Traceback (most recent call last):
    pyrometer.errors.UserProgramError: torch.export cannot take this model: ValueError: no such operator
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        said = f"{type(error).__name__}: {_plain(error)}"
        if root is not error:
            said += f" ({type(root).__name__}: {_plain(root)})"
        raise UserProgramError(f"{name} {CANNOT_TAKE}: {said}") from error


def _plain(error: BaseException) -> str:
    return _COLOURS.sub("", first_line(error))[:_SENTENCE]
