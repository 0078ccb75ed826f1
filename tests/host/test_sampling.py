"""Steps of a workload are sampled as they are, without what came before them."""

from __future__ import annotations

import gc

import torch
from torch import nn

from pyrometer.host.sampling import sample_host
from pyrometer.workload.inference import Inference


class Builds(nn.Module):
    """Its first call keeps so many objects that Python collects garbage at the next chance."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[list[int]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.kept:
            gc.disable()
            self.kept.extend([number] for number in range(2_000_000))
            gc.enable()
        pairs = [[number, number] for number in range(800)]
        return x + len(pairs)


def test_a_collection_that_was_due_before_is_not_told_of_the_step_that_is_sampled() -> None:
    samples = sample_host(Inference(Builds(), torch.ones(2)), budget_s=1e-6)
    garbage = sum(stack.ns for stack in samples.stacks if stack.garbage)
    assert garbage < sum(stack.ns for stack in samples.stacks) / 2
