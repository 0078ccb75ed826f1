"""What a step computes again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.dataflow.analyses.repeated import repeated
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training

Flow = Callable[..., FlowGraph]


class Writer(nn.Module):
    """Writes words while it looks at a memory."""

    def __init__(self, *, once: bool) -> None:
        super().__init__()
        self.keys, self.out = nn.Linear(8, 8), nn.Linear(8, 8)
        self.once = once

    def project(self, memory: torch.Tensor) -> torch.Tensor:
        return self.keys(memory.flatten(1)).view(2, 3, 8)

    def forward(self, memory: torch.Tensor) -> torch.Tensor:
        word = torch.ones(2, 1, 8)
        kept = self.project(memory.view(2, 3, 8).flatten(0, 1))
        for _ in range(4):
            keys = kept if self.once else self.project(memory.view(2, 3, 8).flatten(0, 1))
            word = self.out((word @ keys.transpose(1, 2)).softmax(-1) @ keys)
        return word


def facts_of(graph: FlowGraph) -> list[tuple[str | None, str, int]]:
    return [(fact.where.function, fact.since, fact.results) for fact in repeated(graph)]


def test_what_a_loop_projects_again_in_each_round_is_found_with_how_often(flow: Flow) -> None:
    work = Inference(Writer(once=False), torch.randn(6, 8))
    facts = [fact for fact in repeated(flow(work)) if fact.where.function == "Writer.project"]
    assert [(fact.since, fact.calls_per_step) for fact in facts] == [("same step", 4.0)]
    assert 0.5 < facts[0].of_line < 0.85  # the first and views of the weight are not meant
    assert facts_of(flow(Inference(Writer(once=True), torch.randn(6, 8)))) == []


class Masked(nn.Module):
    """Each layer makes its own mask; the table is made of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.rate = nn.Parameter(torch.ones(4))

    def mask(self) -> torch.Tensor:
        return torch.ones(4, 4).tril().log()

    def scale(self) -> torch.Tensor:
        return self.rate.exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x) @ self.mask().nan_to_num() + self.scale()
        return x


def test_what_is_made_of_constants_and_parameters_lasts_until_these_change(flow: Flow) -> None:
    said = {
        (function, since) for function, since, _ in facts_of(flow(Inference(Masked(), torch.randn(2, 4))))
    }
    assert ("Masked.mask", "step before") in said
    assert ("Masked.scale", "step before") in said
    model = Masked()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(2, 4), torch.randn(2, 4))] * 4
    trained = flow(Training(model, nn.functional.mse_loss, optimizer, batches))
    said = {(function, since) for function, since, _ in facts_of(trained)}
    assert ("Masked.mask", "step before") in said
    assert ("Masked.scale", "step before") not in said


def _noise() -> torch.Tensor:
    torch.manual_seed(0)
    noise = torch.randn(4)
    return noise + torch.dropout(noise, 0.5, train=True)


def _filled() -> torch.Tensor:
    rows = []
    for number in range(3):
        row = torch.zeros(4)  # filled with something else in each round
        row[number] = torch.rand(())
        rows.append(row.cumsum(0))
    return torch.stack(rows)


TABLE = torch.ones(3)


def _state() -> torch.Tensor:
    total = TABLE.sum()
    TABLE.add_(torch.rand(3))
    return total + TABLE.sum()


@pytest.mark.parametrize("step", [_noise, _filled, _state])
def test_chance_and_what_is_written_into_are_not_the_same_again(flow: Flow, step: Any) -> None:
    assert facts_of(flow(step)) == []


def test_the_inputs_of_a_step_may_be_others_in_the_next(flow: Flow) -> None:
    given = torch.randn(4, 4)

    def step() -> torch.Tensor:
        return (given @ given).relu()

    assert facts_of(flow(step)) == []


def test_numbers_of_the_host_are_told_apart_by_their_values(flow: Flow) -> None:
    def step() -> torch.Tensor:
        return torch.stack([torch.tensor([1.0, number]).exp().sum() for number in (1.0, 1.0, 2.0)])

    facts = repeated(flow(step))
    assert {fact.since for fact in facts} == {"step before"}
    assert max(fact.results for fact in facts) >= 2


def test_memory_among_the_arguments_is_not_written_out(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.randn(64, 64)

    def step() -> torch.Tensor:
        return torch.empty(0).set_(weights.untyped_storage(), 0, (64, 64)) + copy.deepcopy(weights)

    graph = flow(step)
    monkeypatch.setattr(torch.UntypedStorage, "__repr__", lambda _: pytest.fail("every byte is written out"))
    repeated(graph)
