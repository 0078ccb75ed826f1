"""`shape_buckets`: inputs of varying sizes, padded to few sizes that are compiled each."""

from __future__ import annotations

import inspect

import torch

from pyrometer.tuning.levers.families.executor.compile import uncompilable
from pyrometer.tuning.levers.lever import Executor, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.tuning.shapes.buckets import Bucketed, ShapeBuckets
from pyrometer.tuning.shapes.sample import varying_dims

NUM_DRAWN = 64
"""Inputs whose sizes are what buckets are chosen by."""

_MOST_GRAPHS = (4, 8)


@lever
class UseShapeBuckets(Executor):
    """Pad inputs to few sizes, and compile a graph for each."""

    name = "shape_buckets"
    reads_inputs = True
    title = "pad inputs to few sizes, each compiled"
    why = (
        "A graph of fixed sizes is faster than one for any size, and one for each size would compile for ever. Padding costs "
        "arithmetic: it pays where the sizes lie close together. Padding that changes results is refused when it is first seen."
    )
    stage = "compile"
    prior = 0.7
    minutes = 2.0
    pasted = (
        '# dims: what varies, such as {"ids": {1: "length"}}; sample: the sizes of your inputs',
        "model = pm.ShapeBuckets(model, dims, sample=sample, max_graphs=$max_graphs)",
    )

    def refuses(self, subject: Subject) -> str | None:
        """Sizes have to vary, in inputs that have names."""
        if not subject.shapes_vary():
            return "all inputs have the same shapes"
        if not varying_dims(_sample(subject)):
            return "which dimension varies cannot be told by the names of the model's arguments"
        return uncompilable(subject)

    def choices(self, subject: Subject) -> list[Parameters]:
        """Few graphs first."""
        return [{"max_graphs": number} for number in _MOST_GRAPHS]

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Choose the sizes; they are compiled at the first call."""
        sample = _sample(subject)
        subject.model = Bucketed(
            ShapeBuckets(
                subject.model,
                varying_dims(sample),
                sample=sample,
                max_graphs=parameters["max_graphs"],
                measure=False,
            )
        )

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Buckets were compiled."""
        assert isinstance(subject.model, Bucketed)
        graphs = subject.model.buckets.statistics().num_graphs
        return None if graphs else "no size was compiled"


def _sample(subject: Subject) -> list[dict[str, tuple[int, ...]]]:
    """The shapes of some inputs, by the names of the model's arguments."""
    names = list(inspect.signature(subject.model.forward).parameters)
    return [
        {
            name: tuple(value.shape)
            for name, value in [*zip(names, call.args, strict=False), *call.kwargs.items()]
            if isinstance(value, torch.Tensor)
        }
        for call in subject.examples(NUM_DRAWN)
    ]
