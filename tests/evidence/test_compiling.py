"""A check says what a program compiles, and tries torch.compile only when asked to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.evidence.script import observe_script
from pyrometer.workload.inference import Inference

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x)
        if y.mean() > 0:
            y = y * 2
        return y

net = torch.compile(Net(), backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for number in range(30):
    optimizer.zero_grad()
    net(torch.randn(4 if number % 5 else 3, 8)).pow(2).mean().backward()
    optimizer.step()
"""


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x).abs()
        if y.sum() > 0:
            y = y * 2
        return y


def checked(model, **options):
    asked = ObserveOptions(budget_s=3.0, confidence=0.95, **options)
    return observe(Inference(model, torch.randn(4, 8)), "work", asked).evidence


@pytest.mark.slow
def test_a_program_that_compiles_has_a_chapter_about_it():
    found = checked(torch.compile(Branching(), backend="aot_eager")).compiled
    assert (found.graphs, [graph_break.id for graph_break in found.breaks]) == (2, ["gb0170"])
    assert found.cost.first_call_s > found.cost.steady_s > 0
    assert found.graph_records == []


def test_a_program_that_does_not_has_none():
    assert checked(Branching()).compiled is None


@pytest.mark.exhaustive
def test_compiling_is_tried_when_asked_for():
    found = checked(Branching(), compiling=True).compiled
    assert found.graphs == 2
    assert found.cost.eager_steady_s > 0
    assert found.error.within_tolerance


@pytest.mark.exhaustive
def test_a_script_says_what_it_compiled(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    evidence = observe_script([str(path)], ObserveOptions(confidence=0.95)).evidence
    assert evidence.script.exit_code == 0
    assert [graph_break.line for graph_break in evidence.compiled.breaks] == [12]
    assert evidence.compiled.recompiles[0].changed_inputs[0].kind == "size"
