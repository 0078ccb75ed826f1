"""Advised rewrites are carried out in memory and measured; the program is as it was afterwards."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import torch

from pyrometer.advice import Advice
from pyrometer.compiler.advice.record import RewriteTrial
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.trial import try_rewrites
from pyrometer.record import from_json, to_json
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training

pytestmark = pytest.mark.slow  # compiles

PROGRAM = """
import torch
from torch import nn

LIMIT = 0.5

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

class Net(Base):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x).tanh()
        if y.max() < LIMIT:
            y = y * 2
        scale = y.mean().item()
        return self.head(y * scale)

class Reader(Base):
    def forward(self, x):
        y = self.layer(x)
        torch._dynamo.graph_break()
        names = [str(v) for v in y.tolist()]
        return y * len(names)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The program as a module of a file."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "program", module)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    return module


def compiled(model):
    return torch.compile(model, backend="aot_eager")


def test_breaks_go_outputs_stay_and_the_program_is_as_it_was(program, tmp_path):
    code = program.Net.forward.__code__
    work = Inference(compiled(program.Net()), torch.randn(4, 8))
    report = inspect_compile(work, budget_s=0.3)
    trial = try_rewrites(work, report, budget_s=0.5)
    assert (trial.breaks_before, trial.breaks_after, trial.failure) == (2, 0, None)
    assert [(rewrite.where.line, rewrite.rewrite) for rewrite in trial.rewrites] == [
        (19, "y = torch.where(y.max() < LIMIT, y * 2, y)"),
        (21, "scale = y.mean().detach()"),
    ]
    assert trial.error.within_tolerance
    assert trial.verdict.ratio > 0
    assert program.Net.forward.__code__ is code
    assert (tmp_path / "program.py").read_text() == PROGRAM
    assert from_json(RewriteTrial, to_json(trial)) == trial


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, while it traces
@pytest.mark.exhaustive
def test_a_training_step_is_tried_too_and_its_weights_stay(program):
    model = program.Net()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    batches = [(torch.randn(4, 8), torch.randn(4, 8))]
    work = Training(
        compiled(model), torch.nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1), batches
    )
    trial = try_rewrites(work, inspect_compile(work, budget_s=0.3), budget_s=0.5)
    assert (trial.breaks_after, trial.failure) == (0, None)
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


@pytest.mark.slow
def test_a_wrong_rewrite_is_seen_in_the_outputs(program):
    work = Inference(compiled(program.Net()), torch.randn(4, 8))
    report = inspect_compile(work, budget_s=0.3)
    first = report.breaks[0]
    first.advice[:] = [
        Advice(
            slug="wrong",
            title="wrong",
            why="",
            replaces=first.advice[0].replaces,
            rewrite="y = y * 3",
            fix_class="exact",
        )
    ]
    trial = try_rewrites(work, report, budget_s=0.5)
    assert not trial.error.within_tolerance


def test_a_rewrite_that_fails_is_a_finding_and_nothing_is_left_behind(program):
    work = Inference(compiled(program.Net()), torch.randn(4, 8))
    code = program.Net.forward.__code__
    report = inspect_compile(work, budget_s=0.3)
    first = report.breaks[0]
    first.advice[:] = [
        Advice(
            slug="fails",
            title="fails",
            why="",
            replaces=first.advice[0].replaces,
            rewrite="y = y.no_such_method()",
            fix_class="exact",
        )
    ]
    trial = try_rewrites(work, report, budget_s=0.5)
    assert "no_such_method" in trial.failure
    assert trial.breaks_after is None
    assert program.Net.forward.__code__ is code


@pytest.mark.exhaustive
def test_what_is_not_sure_is_not_tried(program):
    work = Inference(compiled(program.Reader()), torch.randn(4, 8))
    report = inspect_compile(work, budget_s=0.3)
    for graph_break in report.breaks:
        graph_break.advice[:] = [
            Advice(
                slug="t", title="t", why="", replaces=graph_break.source, rewrite="pass", fix_class="semantic"
            )
        ]
    trial = try_rewrites(work, report, budget_s=0.5)
    assert trial.rewrites == []
    assert "sure enough" in trial.failure


@pytest.mark.exhaustive
def test_a_source_that_changed_meanwhile_is_told(program):
    work = Inference(compiled(program.Net()), torch.randn(4, 8))
    report = inspect_compile(work, budget_s=0.3)
    for graph_break in report.breaks:
        graph_break.advice[:] = [
            Advice(slug="t", title="t", why="", replaces="gone = 1", rewrite="gone = 2", fix_class="exact")
        ]
    trial = try_rewrites(work, report, budget_s=0.5)
    assert len(trial.skipped) == 2
    assert "gone = 1" in trial.skipped[0]
