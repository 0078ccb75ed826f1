"""With Inductor, once for all tests of this file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from pyrometer.compiler.inspection.evaluation import evaluate_modes
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.record import Evaluation
from pyrometer.compiler.report import CompileReport
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training

keeps_compiled = True
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def trained() -> CompileReport:
    torch._dynamo.reset()
    net = model()
    work = Training(
        net,
        nn.MSELoss(),
        torch.optim.SGD(net.parameters(), lr=0.01),
        [(torch.randn(8, 32), torch.randn(8, 1))],
    )
    return inspect_compile(work, budget_s=2.0, strict=True)


@pytest.fixture(scope="module")
def deep(trained: CompileReport) -> CompileReport:
    torch._dynamo.reset()
    return inspect_compile(Inference(model(), torch.randn(8, 32)), deep=True, budget_s=1.0, strict=True)


@pytest.fixture(scope="module")
def evaluated(deep: CompileReport) -> Evaluation:
    torch._dynamo.reset()
    return evaluate_modes(Inference(model(), torch.randn(8, 32)), ("default", "reduce-overhead"), mode_s=1.0)


def test_a_plain_training_workload_is_compiled_with_its_backward(trained):
    assert trained.graphs == 1
    assert trained.breaks == []
    (compilation,) = trained.compilations
    assert compilation.outcome == "compiled"
    assert compilation.backward_s > 0
    assert sorted(code.is_backward for code in trained.code) == [False, True]
    assert trained.artifact_bytes == sum(code.num_bytes for code in trained.code) > 0


def test_the_cost_lies_in_the_first_call(trained):
    cost = trained.cost
    assert 0 < cost.compile_s <= cost.first_call_s
    assert sum(cost.phases_s.values()) == pytest.approx(cost.compile_s, rel=0.02)
    assert cost.first_call_s > 100 * cost.steady_s
    assert cost.eager_steady_s > 0
    assert (cost.break_even_steps is not None) == (cost.outcome == "faster")


def test_the_graph_is_joined_to_its_compilation_by_id_and_cache_key(trained):
    (graph,) = trained.runtime.graphs
    (forward, backward) = (event.key for event in trained.cache.events if event.cache == "fx_graph")
    assert graph.compile_id == "0/0"
    assert graph.cache_key in {forward, backward}
    assert graph.calls_per_step == 1
    assert graph.compile_s == trained.compilations[0].total_s
    assert 0 < graph.backward_s < graph.total_s
    assert trained.runtime.lookup_s > 0
    assert trained.runtime.wrapper_s > 0


def test_the_losses_are_those_of_eager(trained):
    assert trained.error.within_tolerance
    assert trained.error.num_values == 3


def test_guards_are_counted_and_timed(trained):
    assert trained.guards.total > 0
    assert trained.guards.eval_s > 0


def test_nothing_is_left_unsaid(trained):
    assert trained.unavailable == []


def test_deep_tells_of_fusions(deep):
    assert deep.fusions
    assert deep.passes
    assert any(group.num_nodes > 1 for group in deep.fusions)
    assert deep.error.within_tolerance


@pytest.mark.exhaustive  # each in a process of its own is what `compile --with modes` does
def test_modes_are_each_compiled_cold_and_compared(evaluated):
    eager, *modes = evaluated.modes
    assert eager.outcome == "reference"
    for mode in modes:
        assert mode.failure is None
        assert mode.compile_s > 100 * mode.latency_s
        assert mode.artifact_bytes > 0
        assert mode.max_rel < 1e-4
        assert mode.ratio > 0
    assert modes[1].compile_s > modes[0].compile_s / 10
    assert evaluated.sentence
