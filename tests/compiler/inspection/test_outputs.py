"""Outputs that are objects are compared by the tensors in them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from representative import every
from torch import nn

from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.outputs import plain_output
from pyrometer.workload.inference import Inference


@dataclasses.dataclass
class Plain:
    logits: torch.Tensor
    name: str = "a"


@dataclasses.dataclass
class Mapped(OrderedDict):  # type: ignore[type-arg] # as outputs of transformers are
    logits: Any = None

    def __post_init__(self) -> None:
        self["logits"] = self.logits


class Bag:
    def __init__(self, logits: torch.Tensor) -> None:
        self.inner = SimpleNamespace(logits=[logits])
        self.me = self


class Returning(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.linear, self.kind = nn.Linear(3, 3), kind

    def forward(self, x: torch.Tensor) -> Any:
        return self.kind(self.linear(x))


def wrong(graph: Any, _inputs: Any) -> Any:
    return lambda *given: [output + 1 for output in graph.forward(*given)]


@pytest.mark.parametrize("kind", [Plain, Mapped, Bag])
@pytest.mark.parametrize("backend", every(2, [wrong, "eager"]))
def test_objects_that_hold_tensors_are_compared(kind, backend):
    model = torch.compile(Returning(kind), backend=backend)
    report = inspect_compile(Inference(model, torch.randn(2, 3)), budget_s=0.1)

    assert report.error is not None
    assert report.error.mismatch is None
    assert report.error.num_values == 6
    assert report.error.within_tolerance == (backend == "eager")


def test_what_holds_no_tensor_stays_as_it_is():
    text, module = SimpleNamespace(name="a"), nn.Linear(1, 1)

    assert plain_output(text) is text
    assert plain_output(module) is module
    assert plain_output(None) is None
