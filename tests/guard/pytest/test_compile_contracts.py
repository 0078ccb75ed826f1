"""What torch.compile makes of programs, counted."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import ContractError, InputError

pytestmark = pytest.mark.slow


class Gate(nn.Module):
    """A mixture of two experts, chosen in Python or in torch."""

    def __init__(self, in_python):
        super().__init__()
        self.one, self.other, self.in_python = nn.Linear(8, 8), nn.Linear(8, 8), in_python

    def forward(self, x):
        if not self.in_python:
            return torch.where(x.mean() > 0, self.one(x), self.other(x))
        return self.one(x) if x.mean().item() > 0 else self.other(x)


def test_a_graph_that_is_whole(contract):
    assert contract.max_graph_breaks(pm.Inference(Gate(in_python=False), torch.randn(4, 8))).value == 0


def test_a_break_is_named_with_its_line(contract):
    work = pm.Inference(Gate(in_python=True), torch.randn(4, 8))
    with pytest.raises(ContractError, match=r"max_graph_breaks broken(.|\n)*test_compile_contracts.py:\d+"):
        contract.max_graph_breaks(work)
    assert contract.max_graph_breaks(work, 3).outcome == "kept"


def test_what_was_compiled_by_an_earlier_test_is_seen(contract):
    model = torch.compile(Gate(in_python=True), backend="eager")
    model(torch.randn(4, 8))
    for _ in range(2):
        with pytest.raises(ContractError, match="max_graph_breaks broken"):
            contract.max_graph_breaks(pm.Inference(model, torch.randn(4, 8)))


def test_shapes_that_compile_again(contract):
    layer = nn.Sequential(nn.Linear(8, 8), nn.GELU())
    with pytest.raises(ContractError, match=r"max_recompiles broken(.|\n)*4 → 6"):
        contract.max_recompiles(pm.Inference(layer, [(4, 8), (6, 8), (9, 8)]))
    assert contract.max_recompiles(pm.Inference(layer, [(4, 8)])).value == 0
    dynamic = torch.compile(layer, backend="eager", dynamic=True)
    assert contract.max_recompiles(pm.Inference(dynamic, [(4, 8), (6, 8), (9, 8)])).value == 0


def test_a_training_step(contract):
    model = Gate(in_python=False)
    batches = [(torch.randn(4, 8), torch.randn(4, 8))] * 3
    work = pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), batches)
    assert contract.max_graph_breaks(work).outcome == "kept"
    assert not hasattr(work.parts.model, "_orig_mod")


def test_where_nothing_is_compiled_nothing_is_kept(contract):
    class Outside(nn.Module):
        @torch.compiler.disable
        def forward(self, x):
            return x * 2

    with pytest.raises(ContractError, match="refused"):
        contract.max_graph_breaks(pm.Inference(Outside(), torch.ones(2)), 1000)


def test_a_backend_that_fails_keeps_nothing(contract):
    def broken(graph, inputs):
        raise RuntimeError("no C++ compiler")

    work = pm.Inference(torch.compile(nn.Linear(2, 2), backend=broken), torch.ones(1, 2))
    with pytest.raises(ContractError, match=r"refused(.|\n)*no C\+\+ compiler"):
        contract.max_graph_breaks(work, 1000)


@pytest.mark.exhaustive  # as for any backend that fails
def test_without_a_compiler_of_c(run_suite, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", str(tmp_path / "no-g++"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    text = """
def test_plain(pyrometer):
    pyrometer.max_graph_breaks(pm.Inference(nn.Linear(4, 4), torch.ones(1, 4)))

def test_compiled(pyrometer):
    pyrometer.max_graph_breaks(pm.Inference(torch.compile(nn.Linear(4, 4)), torch.ones(1, 4)), 1000)
"""
    done = run_suite(text, apart=True)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E *max_graph_breaks refused: Linear", "E *compiled, the program fails: *"])


@pytest.mark.parametrize("most", [-1, 1.5])
def test_illegal_counts(contract, most):
    with pytest.raises(InputError, match="whole number"):
        contract.max_recompiles(pm.Inference(nn.Linear(2, 2), torch.ones(1, 2)), most)
