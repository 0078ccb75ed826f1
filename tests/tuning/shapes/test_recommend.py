"""The recommendation is the cheapest of what was measured, and says by which figures."""

from __future__ import annotations

import json
import random

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.tuning.shapes.recommend import recommend_shapes
from pyrometer.tuning.shapes.record import ShapeStrategies

RNG = random.Random(0)
SAMPLE = [{"x": (2, RNG.randint(20, 40), 4)} for _ in range(60)]


def advise(model, **settings):
    """With the cheapest compiler there is."""
    settings = {"inputs": torch.randn(2, 30, 4), "backend": "eager", "budget_s": 40.0, **settings}
    return recommend_shapes(model, SAMPLE, **settings)


@pytest.mark.slow
def test_every_way_is_measured_and_the_cheapest_recommended(models, tmp_path):
    model = models.Pointwise().train()
    path = tmp_path / "sample.jsonl"
    path.write_text("".join(json.dumps(shapes) + "\n" for shapes in SAMPLE))
    advice = recommend_shapes(
        model, path, inputs=torch.randn(2, 30, 4), backend="eager", budget_s=60.0, expected_calls=5000
    )
    strategy_results = {result.name: result for result in advice.strategies}
    assert set(strategy_results) == {"eager", "dynamic", "buckets", "one_size", "mark_dynamic", "static"}
    assert all(result.failure is None for result in strategy_results.values())
    for result in strategy_results.values():
        assert result.total_s == pytest.approx(result.compile_s + 5000 * result.step_s)
    best = min(result.total_s for result in strategy_results.values())
    assert strategy_results[advice.recommended].total_s <= 1.03 * best
    assert advice.recommended in advice.advice.text
    assert advice.advice.slug == f"shapes-{advice.recommended.replace('_', '-')}"
    assert strategy_results["eager"].num_graphs == 0
    assert strategy_results["eager"].verdict is None
    assert (
        strategy_results["static"].num_graphs
        == len({shapes["x"][1] for shapes in SAMPLE})
        == advice.num_sizes
    )
    assert strategy_results["static"].compile_estimated
    assert strategy_results["dynamic"].num_graphs >= 1
    assert strategy_results["mark_dynamic"].num_graphs == 1
    assert strategy_results["buckets"].num_graphs == len(advice.plan.cells)
    assert 0 <= strategy_results["buckets"].padding_share < 0.5
    assert len(advice.measured_sizes) == 6
    assert model.training
    assert from_json(ShapeStrategies, to_json(advice)) == advice


@pytest.mark.exhaustive
def test_a_model_that_bears_no_padding_gets_another_recommendation(models):
    advice = recommend_shapes(
        pm.Inference(models.ConvNet(), torch.randn(2, 4, 30)),
        [{"x": (2, 4, size)} for size in (20, 30, 40)],
        strategies=["buckets"],
        backend="eager",
        budget_s=20.0,
    )
    buckets = next(result for result in advice.strategies if result.name == "buckets")
    assert "conv1d reads over the edge into the padding" in buckets.failure
    assert buckets.total_s is None
    assert advice.recommended == "eager"
    assert advice.plan is None


def test_what_no_longer_fits_into_the_budget_says_so(models):
    advice = advise(models.Pointwise(), budget_s=1e-6)
    left = {result.name: result.failure for result in advice.strategies if result.failure}
    assert set(left) == {"mark_dynamic", "static"}
    assert "the budget of 1.00 µs was used up" in left["static"]


def test_dynamic_and_padding_to_one_size_are_always_measured_and_what_costs_least_is_recommended(models):
    advice = advise(models.Pointwise(), budget_s=1e-6)
    totals = {result.name: result.total_s for result in advice.strategies if result.total_s is not None}
    assert set(totals) == {"eager", "dynamic", "buckets", "one_size"}
    assert totals[advice.recommended] <= 1.03 * min(totals.values())
    one_size = next(result for result in advice.strategies if result.name == "one_size")
    assert one_size.num_graphs == 1
    assert one_size.padding_share > 0


def test_a_size_that_the_program_fixes_is_told_of_marks():
    def fixed(x):
        return x * 2 if x.shape[1] == 30 else x + 1

    advice = recommend_shapes(
        fixed,
        [{"x": (2, 30)}, {"x": (2, 31)}],
        inputs=torch.randn(2, 30),
        strategies=["mark_dynamic"],
        backend="eager",
        budget_s=20.0,
    )
    marked = next(result for result in advice.strategies if result.name == "mark_dynamic")
    assert "ConstraintViolationError" in marked.failure


def test_functions_and_further_inputs_are_taken_too(models):
    def scaled(x, scale, mask):
        return x * scale * mask[..., None]

    inputs = (torch.randn(2, 30, 4), 2.0, torch.ones(2, 30))
    sample = [{"x": (2, size, 4), "mask": (2, size)} for size in (20, 25, 30)]
    advice = recommend_shapes(
        scaled, sample, inputs=inputs, strategies=["buckets"], mask=None, backend="eager", budget_s=20.0
    )
    assert [result.failure for result in advice.strategies] == [None, None]
    assert advice.plan.axes[0].name == "x.1"


def test_what_cannot_be_compared_is_told(models):
    with pytest.raises(InputError, match="nothing varies"):
        recommend_shapes(nn.Linear(4, 4), [{"input": (2, 4)}] * 3, inputs=torch.randn(2, 4))
    with pytest.raises(InputError, match="give those of one call with a model"):
        recommend_shapes(nn.Linear(4, 4), SAMPLE)
    with pytest.raises(InputError, match="give an Inference workload"):
        recommend_shapes(pm.Call(print), SAMPLE)
    with pytest.raises(InputError, match=r"strategies \['fast'\]"):
        advise(nn.Linear(4, 4), strategies=["fast"])


@pytest.mark.exhaustive
def test_no_way_finds_in_the_cache_what_another_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)))

        def forward(self, x):
            return self.layers(x)

    advice = recommend_shapes(
        Wide(),
        SAMPLE[:12],
        inputs=torch.randn(2, 30, 4),
        strategies=["dynamic", "mark_dynamic"],
        budget_s=90.0,
    )
    strategy_results = {result.name: result for result in advice.strategies}
    assert [result.failure for result in strategy_results.values()] == [None] * 3
    assert "empty cache of its own" in advice.compiled_how
    assert not any("entries were found" in result.note for result in strategy_results.values())
    dynamic, marked = strategy_results["dynamic"], strategy_results["mark_dynamic"]
    assert marked.compile_s / marked.num_graphs > 0.2 * dynamic.compile_s / dynamic.num_graphs
    assert not any("fxgraph" in path.name for path in tmp_path.rglob("*"))


def test_without_caches_on_disk_compile_times_are_as_the_backend_gives_them(models):
    advice = advise(models.Pointwise(), strategies=["dynamic"], budget_s=10.0)
    assert advice.compiled_how.startswith("backend eager: compile times")
