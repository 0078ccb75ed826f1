"""Operators of a few steps, with what they read and write."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import nn

from pyrometer.dataflow import recorder
from pyrometer.dataflow.graph import FlowGraph
from pyrometer.dataflow.record import record_dataflow
from pyrometer.errors import InputError, UserProgramError
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training

Flow = Callable[..., FlowGraph]


def test_a_chain_of_operators_reads_what_the_last_one_wrote(flow: Flow) -> None:
    x = torch.ones(3, 4)
    graph = flow(lambda: (x * 2).relu().sum(), steps=2)
    names = [call.name for call in graph.calls if call.step == 0]
    assert names == ["aten::mul", "aten::relu", "aten::sum"]
    for before, after in zip(graph.calls[:2], graph.calls[1:3], strict=True):
        assert before.writes[0] in after.reads
    assert graph.complete
    assert graph.step_seconds == [3.0, 3.0]


def test_what_is_written_in_place_is_a_value_of_its_own(flow: Flow) -> None:
    def step() -> torch.Tensor:
        x = torch.zeros(4)
        x[1:3] = 1.0
        return x + 1

    graph = flow(step, steps=2)
    fill, add = (call for call in graph.calls if call.step == 0 and call.name in {"aten::fill_", "aten::add"})
    read = graph.values[add.reads[0]]
    assert read.base == fill.writes[0]
    assert graph.values[fill.writes[0]].base is not None  # the rest of the zeros is still there


def test_an_operator_of_the_backward_pass_belongs_to_its_forward_one(flow: Flow) -> None:
    model = nn.Linear(4, 2)
    work = Training(
        model,
        nn.functional.cross_entropy,
        torch.optim.SGD(model.parameters(), lr=0.1),
        [(torch.ones(3, 4), torch.zeros(3, dtype=torch.long))],
    )
    graph = flow(work, steps=2)
    linear = next(call for call in graph.calls if call.name == "aten::addmm")
    assert "aten::mm" in {graph.calls[number].name for number in graph.backward_of[linear.number]}
    assert any(call.optimizer for call in graph.calls)


def test_composite_operators_are_taken_apart_in_inference_mode_too(flow: Flow) -> None:
    graph = flow(Inference(nn.Linear(4, 2), torch.ones(3, 4)), steps=2)
    assert "aten::addmm" in {call.name for call in graph.calls}


def test_what_leaves_for_numpy_has_escaped(flow: Flow) -> None:
    graph = flow(
        lambda: (torch.ones(3) * 2).numpy() and None if False else (torch.ones(3) * 2).numpy().sum(), steps=2
    )
    product = next(call for call in graph.calls if call.name == "aten::mul")
    assert graph.values[product.writes[0]].is_escaped


def test_nothing_of_the_users_is_changed() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    before, state = [p.detach().clone() for p in model.parameters()], torch.get_rng_state()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    record_dataflow(
        Training(model, nn.functional.mse_loss, optimizer, [(torch.ones(2, 4), torch.ones(2, 4))]), steps=2
    )
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_step_that_raises_is_told_and_leaves_no_mode() -> None:
    def step() -> None:
        torch.ones(2) @ torch.ones(3)

    with pytest.raises(UserProgramError, match="RuntimeError"):
        record_dataflow(Call(step), warmup=0)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_compiled_programs_are_refused() -> None:
    model = torch.compile(nn.Linear(2, 2), backend="eager")
    with pytest.raises(InputError, match=r"torch\.compile"):
        record_dataflow(Inference(model, torch.ones(1, 2)), warmup=0)


def test_the_shortest_of_several_durations_counts() -> None:
    ends = iter([0.0, 0.0, 5.0, 0.0, 1.0, 0.0, 9.0])
    x = torch.ones(3)
    graph = record_dataflow(Call(x.relu), steps=3, budget_s=1e9, clock=lambda: next(ends, 0.0))
    assert [call.seconds for call in graph.calls] == [1.0] * 3
    assert graph.step_seconds == [1.0] * 3


def test_steps_beyond_what_is_kept_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MOST_CALLS", 8)
    x = torch.ones(3)
    seconds = itertools.count()
    graph = record_dataflow(
        Call(lambda: x.relu().exp().tanh()), steps=5, budget_s=1e9, clock=lambda: float(next(seconds))
    )
    assert (graph.num_steps, len(graph.calls), graph.complete) == (2, 6, False)
    assert graph.step_seconds == [3.0, 3.0]
    assert graph.notes == ["after 8 operators no more were recorded"]
