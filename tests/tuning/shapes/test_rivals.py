"""What buckets are compared with before traffic, by times that are made up."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from pyrometer.record import from_json, to_json
from pyrometer.tuning.shapes import precompiling, rivals
from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.record import BucketStatistics

LENGTHS = [*range(10, 30), 100, 100, 100]


@pytest.fixture
def precompiled(models, monkeypatch):
    """Statistics after `precompile`, where steps take what a function of the way and its size says."""

    def run(seconds, model=None, **settings):
        def timed(function, call):
            way = "buckets" if isinstance(function, partial) else "dynamic"
            if function is runner.model:
                way = "eager"
            elif way == "buckets" and function.args[0] is not None:
                way = "one_size"
            return function(*call[0], **call[1]), seconds(way, call[0][0].shape[1])

        monkeypatch.setattr(rivals, "timed", timed)
        settings = {
            "sample": [{"x": (2, size, 4)} for size in LENGTHS],
            "max_graphs": 3,
            "backend": "eager",
            **settings,
        }
        runner = ShapeBuckets(model or models.Pointwise(), {"x": [1]}, **settings)
        with torch.no_grad():
            return runner, runner.precompile(torch.randn(2, 9, 4))

    return run


def test_where_buckets_lose_another_way_is_recommended_and_said(precompiled):
    speed = {"buckets": 4.0, "dynamic": 3.0, "eager": 3.7, "one_size": 11.0}
    _, statistics = precompiled(lambda way, size: speed[way] * size * 1e-3)
    steps = {way.name: way.step_s for way in statistics.ways}
    assert steps["buckets"] / steps["dynamic"] == pytest.approx(4 / 3)
    assert statistics.recommended == "dynamic"
    (note,) = [note for note in statistics.notes if note.startswith("buckets lose here")]
    assert note.endswith("use torch.compile(model, dynamic=True) instead; when_slower='switch' does so")
    assert "(1.33×)" in note
    assert from_json(BucketStatistics, to_json(statistics)) == statistics


@pytest.mark.slow
def test_where_buckets_win_nothing_is_said(precompiled):
    speed = {"buckets": 1.0, "dynamic": 3.0, "eager": 3.7, "one_size": 11.0}
    _, statistics = precompiled(lambda way, size: speed[way] * size * 1e-3)
    assert statistics.recommended == "buckets"
    assert statistics.notes == []


def test_the_mean_step_is_that_of_the_sample(precompiled):
    _, statistics = precompiled(lambda _way, size: 1.0 if size < 50 else 2.0, max_graphs=2)
    steps = {way.name: way.step_s for way in statistics.ways}
    assert steps["dynamic"] == pytest.approx((20 * 1.0 + 3 * 2.0) / 23)


def test_the_number_of_buckets_follows_from_the_time_that_steps_take(precompiled):
    flat, _ = precompiled(lambda _way, _size: 1.0)
    steep, _ = precompiled(lambda _way, size: float(size))
    assert flat.plan.axes[0].edges == [100]  # padding costs nothing, so that one graph does
    assert len(steep.plan.axes[0].edges) > 2


@pytest.mark.exhaustive
def test_edges_and_costs_that_are_given_stay(precompiled, models):
    given, _ = precompiled(lambda _way, _size: 1.0, step_cost=float)
    assert len(given.plan.axes[0].edges) > 2
    unmeasured, statistics = precompiled(lambda _way, _size: 1.0, measure=False)
    assert len(unmeasured.plan.axes[0].edges) > 2
    assert (statistics.ways, statistics.recommended) == ([], None)


def test_a_way_that_fails_says_so_and_the_others_are_compared(monkeypatch):
    def fails(_x):
        raise ValueError("no lowering")

    monkeypatch.setattr(rivals, "timed", lambda run, call: (run(*call[0]), 1.0))
    call = rivals.WeightedCall(((torch.ones(2),), {}), 1.0)
    failed, eager = rivals.compare_ways({"dynamic": fails, "eager": torch.relu}, [call])
    assert failed.failure.startswith("ValueError: no lowering")
    assert (failed.step_s, eager.step_s) == (None, 1.0)


def test_measuring_leaves_the_model_and_the_callers_inputs_as_they_were(models):
    class Counting(models.Pointwise):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return super().forward(x)

    model = Counting().eval()
    x = torch.randn(2, 9, 4)
    before, state = x.clone(), torch.get_rng_state()
    runner = ShapeBuckets(model, {"x": [1]}, sample=[{"x": (2, 12, 4)}], backend="eager")
    with torch.no_grad():
        statistics = runner.precompile(x)
    assert statistics.recommended is not None
    assert statistics.calls == statistics.hits == 0
    assert model.calls == 0
    assert torch.equal(x, before)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("made_inside", [True, False])
def test_inputs_of_both_kinds_are_compared_in_inference_mode(models, made_inside):
    x = torch.randn(2, 9, 4)
    runner = ShapeBuckets(models.Pointwise(), {"x": [1]}, sample=[{"x": (2, 12, 4)}], backend="eager")
    with torch.inference_mode():
        statistics = runner.precompile(x.clone() if made_inside else x)
    assert [way.failure for way in statistics.ways] == [None] * 4
    assert statistics.num_graphs == 1


@pytest.mark.parametrize("best", ["dynamic", "eager", "one_size", "buckets"])
def test_calls_go_the_way_that_wins_where_that_is_asked_for(precompiled, best):
    speed = {"buckets": 2.0, "dynamic": 2.0, "eager": 2.0, "one_size": 2.0} | {best: 1.0}
    runner, statistics = precompiled(
        lambda way, size: (
            speed[way] * (100 if way == "one_size" else size) * 1e-3 if best != "one_size" else speed[way]
        ),
        when_slower="switch",
    )
    assert statistics.recommended == best
    x = torch.randn(2, 11, 4)
    with torch.no_grad():
        torch.testing.assert_close(runner(x), runner.model(x))
    after = runner.statistics()
    assert after.calls == 1
    assert after.fallback_calls == (best in {"dynamic", "eager"})
    assert after.num_graphs == (1 if best == "one_size" else statistics.num_graphs)
    assert any("as is done" in note for note in after.notes) == (best != "buckets")


@pytest.mark.exhaustive
def test_without_being_asked_buckets_go_on_although_they_lose(precompiled):
    speed = {"buckets": 4.0, "dynamic": 3.0, "eager": 3.7, "one_size": 11.0}
    runner, _ = precompiled(lambda way, size: speed[way] * size * 1e-3)
    with torch.no_grad():
        runner(torch.randn(2, 11, 4))
    assert runner.statistics().fallback_calls == 0


@pytest.mark.slow
def test_how_many_calls_are_expected_decides_how_many_graphs_pay(precompiled, monkeypatch):
    monkeypatch.setattr(
        precompiling, "cost_by_time", lambda *_: (lambda size: size * 1e-3, 20.0)
    )  # compiling takes 20 s, a step a millisecond per place
    many, _ = precompiled(lambda _way, size: size * 1e-3, expected_calls=1_000_000)
    few, _ = precompiled(lambda _way, size: size * 1e-3, expected_calls=100)
    assert len(few.plan.axes[0].edges) == 1 < len(many.plan.axes[0].edges)
    given, _ = precompiled(lambda _way, size: size * 1e-3, expected_calls=100, compile_cost=0.0)
    assert len(given.plan.axes[0].edges) > 1


def test_the_first_run_tells_what_compiling_takes(monkeypatch):
    runs = []

    def timed(run, call):
        runs.append(call[0][0])
        return run(*call[0]), 5.0 if len(runs) == 1 else 1.0

    monkeypatch.setattr(rivals, "timed", timed)
    cost, compile_s = rivals.cost_by_time(lambda size: size, lambda size: ((size,), {}), [3, 4, 5])
    assert compile_s == 4.0
    assert cost(4) == 1.0
