"""Linear maps of copies."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from pyrometer.dataflow.analyses.late_linear import late_linear
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.workload.inference import Inference

Flow = Callable[..., FlowGraph]


class Merge(nn.Module):
    def __init__(self, *, late: bool, mode: str = "nearest", kernel: int = 1) -> None:
        super().__init__()
        self.project = nn.Conv2d(4, 3, kernel, padding=kernel // 2)
        self.late, self.mode = late, mode

    def enlarged(self, x: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, scale_factor=4, mode=self.mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(self.enlarged(x)) if self.late else self.enlarged(self.project(x))


class Rows(nn.Module):
    def __init__(self, *, late: bool) -> None:
        super().__init__()
        self.mix, self.late = nn.Linear(4, 6), late

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.late:
            return self.mix(x[:, None].expand(-1, 8, -1))
        return self.mix(x)[:, None].expand(-1, 8, -1)


def test_a_projection_of_an_enlarged_image_does_a_sixteenth_before(flow: Flow) -> None:
    image = torch.randn(1, 4, 6, 6)
    late, early = Merge(late=True, mode="bilinear"), Merge(late=False, mode="bilinear")
    for step in (Inference(Merge(late=True), image), lambda: late(image)):
        (fact,) = late_linear(flow(step))
        assert (fact.operator, fact.distinct) == ("aten::convolution", 1 / 16)
        assert (fact.where.function, fact.copied.function) == ("Merge.forward", "Merge.enlarged")
    for step in (Inference(Merge(late=False), image), lambda: early(image)):
        assert late_linear(flow(step)) == []


def test_a_kernel_that_looks_around_is_no_such_map(flow: Flow) -> None:
    assert late_linear(flow(Inference(Merge(late=True, kernel=3), torch.randn(1, 4, 6, 6)))) == []


def test_repeated_rows_can_be_mapped_before(flow: Flow) -> None:
    (fact,) = late_linear(flow(Inference(Rows(late=True), torch.randn(2, 4))))
    assert fact.distinct == 1 / 8
    assert late_linear(flow(Inference(Rows(late=False), torch.randn(2, 4)))) == []


def test_a_value_that_is_spread_over_the_channels_is_no_copy_of_places(flow: Flow) -> None:
    mix = nn.Linear(4, 6)
    assert late_linear(flow(lambda: mix(torch.ones(2, 1).expand(-1, 4)))) == []
