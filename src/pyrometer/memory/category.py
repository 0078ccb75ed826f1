"""The categories that bytes are split into, and what each grows with."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Category: TypeAlias = Literal[
    "parameters",
    "gradients",
    "optimizer",
    "master",
    "activations",
    "inputs",
    "temporaries",
    "workspace",
    "cache",
    "unknown",
]

CATEGORIES: tuple[Category, ...] = get_args(Category)
"""In the order in which they are shown."""

MEANING: dict[Category, str] = {
    "parameters": "weights and buffers of the model",
    "gradients": "of the parameters, until zero_grad sets them to None",
    "optimizer": "state of the optimizer, such as the two moments of Adam",
    "master": "full-precision copies of low-precision weights that the optimizer updates",
    "activations": "results that the backward pass needs, kept since the forward pass or computed again",
    "inputs": "the batch, and a dataset in memory that it is taken from",
    "temporaries": "results that nothing needs any longer than the next operators",
    "workspace": "scratch memory inside of operators, which no tensor shows",
    "cache": "held by the allocator without a tensor in it: cached and fragmented",
    "unknown": "alive, but of nothing above: tensors from before the step that belong to no part of the workload",
}
