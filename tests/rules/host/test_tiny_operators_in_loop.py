"""PYR126: loops over short operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.host.profile import HostLeaf
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR126"
Sampled = Callable[..., Case]


TREES = """
import torch


class Trees(torch.nn.Module):
    def forward(self, x):
        rows = [torch.sigmoid(gate(x)) for gate in self.gates]
        return torch.cat(rows, dim=1)
"""
CELL = """
import torch


def scan(cell, xs, state):
    for i in range(len(xs)):
        state = cell(xs[i], state)
    return state
"""
SHORT = {"operator gate": 0.5, "operator torch.sigmoid": 0.2, "python python": 0.1}


def test_a_comprehension_over_small_modules_is_told(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(TREES, {7: SHORT}, loops={7: (150, SHORT)}))
    assert (finding.where.line, finding.where.function) == (7, "forward")
    assert "150 rounds" in finding.message
    assert "stack" in finding.advice.title
    assert finding.advice.lever == "compile"


def test_rounds_that_depend_on_each_other_have_other_advice(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(CELL, {7: SHORT}, loops={6: (150, SHORT)}))
    assert "depend on each other" in finding.advice.title
    assert finding.advice.gain is not None
    assert (finding.advice.gain.ratio_high or 0) > 0.6  # at worst the rounds stay, with all that depends


LSTM = """
import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        self.first, self.second = torch.nn.LSTMCell(4, 8), None
        self.cell = torch.nn.LSTMCell(4, 8)

    def forward(self, xs, h, c):
        states = []
        for t in range(xs.shape[1]):
            h, c = self.cell(xs[:, t], (h, c))
            states.append(h)
        return states
"""


def test_a_cell_in_a_loop_over_time_is_a_layer(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(LSTM, {13: SHORT}, loops={12: (150, SHORT)}))
    assert "`nn.LSTM`" in finding.advice.title


def test_a_cell_that_is_fed_its_own_answer_stays_a_loop(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    source = LSTM.replace("self.cell(xs[:, t]", "self.cell(h[:, :4]")
    assert (
        "depend on each other"
        in only(CODE, sampled(source, {13: SHORT}, loops={12: (150, SHORT)})).advice.title
    )


FREE_AROUND = """
import torch


def farthest(clouds, count):
    picked = []
    for cloud in clouds:
        distance = torch.full((len(cloud),), 9.0)
        chosen = []
        for i in range(count):
            gap = (cloud - cloud[0]).square().sum(-1)
            distance = torch.minimum(distance, gap)
            chosen.append(distance.argmax())
        picked.append(torch.stack(chosen))
    return torch.stack(picked)
"""


def test_a_loop_around_whose_rounds_are_free_is_named(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(FREE_AROUND, {12: SHORT}, loops={10: (320, SHORT)}))
    assert finding.where.line == 10
    assert "the loop over `clouds` around it (line 7)" in finding.advice.title


def test_around_a_state_that_goes_on_there_is_no_free_loop(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    text = FREE_AROUND.replace("        distance = torch.full((len(cloud),), 9.0)\n", "        pass\n")
    text = text.replace("    picked = []\n", "    picked, distance = [], clouds[0]\n")
    finding = only(CODE, sampled(text, {12: SHORT}, loops={10: (320, SHORT)}))
    assert "around it" not in finding.advice.title


WEIGHTS = """
import torch


def follow(averaged, model, decay):
    for old, new in zip(averaged.parameters(), model.parameters()):
        old.mul_(decay).add_(new, alpha=1 - decay)
"""


def test_of_weights_many_are_updated_by_one_call(sampled: Sampled, only: Callable[..., Finding]) -> None:
    finding = only(CODE, sampled(WEIGHTS, {7: SHORT}, loops={6: (150, SHORT)}))
    assert "torch._foreach_lerp_" in finding.advice.title
    averaged, weights = ([torch.rand(3), torch.rand(2, 2)] for _ in range(2))
    expected = [old * 0.9 + new * 0.1 for old, new in zip(averaged, weights, strict=True)]
    torch._foreach_lerp_(averaged, weights, 1 - 0.9)
    torch.testing.assert_close(averaged, expected)


CLIPPING = """
import torch


def clip(model, limit):
    total = 0.0
    for p in model.parameters():
        total += p.grad.norm() ** 2
    scale = limit / total.sqrt()
    for p in model.parameters():
        p.grad.mul_(scale)
"""


def test_a_second_loop_over_the_same_goes_with_it_at_best(
    sampled: Sampled, findings: Callable[..., list[Finding]]
) -> None:
    both = {7: (150, {"operator Tensor.norm": 0.4}), 10: (150, {"operator Tensor.mul_": 0.2})}
    alone = findings(CODE, sampled(CLIPPING, {8: {"operator": 0.4}}, loops={7: both[7]}))[0].advice.gain
    beside = findings(CODE, sampled(CLIPPING, {8: {"operator": 0.4}}, loops=both))[0].advice.gain
    assert alone is not None
    assert beside is not None
    assert (alone.ratio_low or 0) - (beside.ratio_low or 0) == pytest.approx(0.2, abs=0.01)
    assert alone.ratio_high == beside.ratio_high


def test_the_backward_pass_of_a_loop_is_all_that_the_trace_gives_its_function(
    sampled: Sampled, only: Callable[..., Finding], traced: Callable[..., Case]
) -> None:
    trace = traced("tiny_ops", "workload").trace
    assert trace is not None
    line = msgspec.structs.replace(
        trace.top_lines[0], file="train.py", line=6, function="scan", forward_ns=1000, backward_ns=3000
    )
    leaves = {"operator cell": 0.2}
    spent = {7: leaves, 20: {"backward Tensor.backward": 0.6}}
    case = sampled(
        CELL, spent, loops={6: (150, leaves)}, trace=msgspec.structs.replace(trace, top_lines=[line])
    )
    assert case.host is not None
    whole = [HostLeaf(kind="backward", name="Tensor.backward", seconds_per_step=0.6 * case.host.step_s)]
    case = msgspec.structs.replace(case, host=msgspec.structs.replace(case.host, leaves=whole))
    assert only(CODE, case).cost.share == pytest.approx(0.8)


def test_the_layers_of_a_network_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], traced: Callable[..., Case]
) -> None:
    layers = {"operator layer": 0.9}
    assert findings(CODE, sampled(TREES, {7: layers}, loops={7: (12, layers)})) == []
    long = traced("video_encoder", "fixed").trace  # rounds of 0.3 ms
    assert findings(CODE, sampled(TREES, {7: layers}, loops={7: (30, layers)}, trace=long)) == []


def test_one_module_for_all_gates_gives_the_same(run: Callable[..., dict[str, Any]]) -> None:
    with torch.random.fork_rng():
        before = run(CODE, "Example", torch=torch)["Trees"]()
        after = run(CODE, "Use instead", torch=torch)["Trees"]()
        before.gates = torch.nn.ModuleList(torch.nn.Linear(8, 1) for _ in range(5))
        after.gates = torch.nn.Linear(8, 5)
        with torch.no_grad():
            after.gates.weight.copy_(torch.cat([gate.weight for gate in before.gates]))
            after.gates.bias.copy_(torch.cat([gate.bias for gate in before.gates]))
        x = torch.randn(4, 8)
    torch.testing.assert_close(after(x), before(x))
