"""Buckets give what the model gives, from few graphs, whatever the sizes."""

from __future__ import annotations

import json
import random
import threading

import pytest
import torch
from torch import nn

from pyrometer.compiler.collecting.collector import collect
from pyrometer.errors import InputError
from pyrometer.tuning.shapes.buckets import ShapeBuckets
from pyrometer.tuning.shapes.isolated import isolates_recompiles
from pyrometer.tuning.shapes.record import AxisPlan, BucketPlan

# Dynamo looks at .grad of inputs that are no leaves, and hides the warning where warnings are no errors.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")


LIMIT = 2
"""Of torch, lowered so that few graphs are more."""


def equal(ours, theirs):
    """Alike up to the order of summation."""
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def graphs_of(log):
    """How many graphs were compiled."""
    return sum(1 for _ in log.of("dynamo_output_graph"))


@pytest.fixture
def buckets(models, lengths):
    """Over a model that bears padding, with three edges learned from sizes up to 40."""

    def build(model=None, **settings):
        settings = {
            "sample": lengths(range(5, 41)),
            "max_graphs": 3,
            "backend": "eager",
            "measure": False,
            **settings,
        }
        return ShapeBuckets(model or models.Pointwise(), {"x": [1]}, **settings)

    return build


def test_results_are_those_of_the_model_at_every_size(buckets):
    runner = buckets()
    for size in range(5, 41):
        x = torch.randn(2, size, 4)
        equal(runner(x), runner.model(x))


@pytest.mark.slow
def test_the_exercise_many_draws_between_100_and_200(models):
    rng = random.Random(7)
    draws = [rng.randint(100, 200) for _ in range(600)]
    runner = ShapeBuckets(
        models.Pointwise(),
        {"x": [1]},
        sample=[{"x": (2, size, 4)} for size in draws],
        max_graphs=8,
        backend="eager",
        measure=False,
    )
    with torch.no_grad(), collect() as collector:
        runner.precompile(torch.randn(2, 150, 4))
        for size in draws:
            assert runner(torch.randn(2, size, 4)).shape == (2, size, 4)
    statistics = runner.statistics()
    naive = len(set(draws))
    assert statistics.hit_rate >= 0.95
    assert graphs_of(collector.log()) <= 0.2 * naive
    assert sum(1 for _ in collector.log().of("recompile_reasons")) == 0
    assert statistics.recompiles_avoided >= 0.8 * naive
    # No buckets of one width waste less, whatever the width.
    count = len(runner.plan.axes[0].edges)
    fixed = [[200 - width * k for k in reversed(range(count))] for width in range(1, 200 // count)]
    padded = [sum(next(edge for edge in edges if edge >= size) for size in draws) for edges in fixed]
    assert statistics.padding_share <= 1 - sum(draws) / min(padded)


def test_each_bucket_is_compiled_once_and_never_again(models, lengths, buckets):
    runner = buckets(max_graphs=12)
    with collect() as collector:
        for _ in range(3):
            for size in range(5, 41):
                runner(torch.randn(2, size, 4))
    log = collector.log()
    assert graphs_of(log) == runner.statistics().misses == len(runner.plan.axes[0].edges)
    assert list(log.of("recompile_reasons")) == []


@pytest.mark.exhaustive
def test_more_graphs_than_torchs_recompile_limit_do_not_disturb_one_another(models, lengths):
    if not isolates_recompiles():
        pytest.skip("this torch cannot keep functions behind graph breaks apart")
    model = models.Broken()
    sizes = range(3, 3 + LIMIT + 2)
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=list(sizes))])
    runner = ShapeBuckets(model, {"x": [1]}, plan=plan, max_graphs=20, backend="eager")
    inputs = [torch.randn(2, size, 4) for size in sizes]
    with torch._dynamo.config.patch(recompile_limit=LIMIT):
        for x in inputs:
            equal(runner(x), model(x))
        with collect() as collector:
            for x in inputs:
                runner(x)
    assert list(collector.log().entries) == []
    assert runner.statistics().num_graphs == len(sizes)
    assert (
        "the model has graph breaks, so that every bucket compiles 3 graphs" in runner.statistics().notes[0]
    )


def test_no_setting_of_torch_is_changed(buckets):
    import torch._dynamo.config as dynamo_config

    before = dynamo_config.save_config()
    runner = buckets()
    runner.precompile(torch.randn(2, 9, 4))
    runner(torch.randn(2, 50, 4))
    assert dynamo_config.save_config() == before


def test_inputs_are_found_by_keyword_and_by_position(models):
    def combine(x, scale, *, y):
        return x * scale + y

    runner = ShapeBuckets(
        combine,
        {"x": {1: "length"}, "y": {1: "length"}},
        sample=[{"x": (2, 8), "y": (2, 8)}],
        backend="eager",
    )
    x, y = torch.randn(2, 5), torch.randn(2, 5)
    equal(runner(x, 2.0, y=y), combine(x, 2.0, y=y))
    equal(runner(x=x, scale=2.0, y=y), combine(x, 2.0, y=y))


def test_sizes_of_one_name_must_agree(models):
    runner = ShapeBuckets(
        lambda x, y: x + y, {"x": {0: "n"}, "y": {0: "n"}}, sample=[{"x": (8,)}], backend="eager"
    )
    with pytest.raises(InputError, match="dimension 0 of y is 4, but n is 3"):
        runner(torch.zeros(3), torch.zeros(4))


def test_nested_outputs_are_cut_each_by_its_own_rule(models, buckets):
    model = models.Nested()
    runner = buckets(model)
    for size in (5, 6, 7, 8, 15, 33):
        x = torch.randn(2, size, 4)
        ours, theirs = runner(x), model(x)
        assert ours.keys() == theirs.keys()
        equal(ours["same"], theirs["same"])
        equal(ours["rest"], theirs["rest"])
        assert ours["name"] == "nested"
        assert ours["same"].is_contiguous()


def test_two_sizes_are_padded_on_a_grid(models):
    model = models.Pointwise()
    sample = [{"x": (rows, size, 4)} for rows in (1, 2, 8) for size in (10, 20, 40)]
    runner = ShapeBuckets(
        model, {"x": {0: "batch", 1: "length"}}, sample=sample, max_graphs=4, backend="eager"
    )
    for rows, size in [(1, 7), (3, 11), (8, 39), (2, 20)]:
        x = torch.randn(rows, size, 4)
        equal(runner(x), model(x))
    statistics = runner.statistics()
    assert statistics.num_graphs <= 4
    assert [set(use.edges) for use in statistics.buckets] == [{"batch", "length"}] * statistics.num_graphs


def test_sizes_are_learned_from_the_first_calls(buckets):
    runner = buckets(sample=None, learn_calls=10)
    for size in range(5, 15):
        x = torch.randn(2, size, 4)
        equal(runner(x), runner.model(x))
    assert runner.plan is None
    runner(torch.randn(2, 7, 4))
    assert runner.plan.axes[0].edges[-1] == 14
    statistics = runner.statistics()
    assert statistics.warmup_calls == 10
    assert statistics.misses == 1


def test_a_size_to_be_covered_is_planned_and_compiled_although_never_seen(buckets):
    runner = buckets(cover={"x.1": 64})
    assert runner.plan.axes[0].edges[-1] == 64
    assert [64] in runner.plan.cells
    assert runner(torch.randn(2, 60, 4)).shape == (2, 60, 4)
    assert runner.statistics().fallback_calls == 0


def test_sizes_are_learned_from_a_file(tmp_path, buckets):
    log = tmp_path / "sample.jsonl"
    log.write_text("".join(json.dumps({"x": [2, size, 4]}) + "\n" for size in (8, 8, 16)))
    assert buckets(sample=log).plan.axes[0].edges == [8, 16]


def test_a_plan_is_saved_and_loaded(tmp_path, buckets):
    first = buckets()
    first.save(tmp_path / "plan.json")
    assert buckets(sample=None, plan=tmp_path / "plan.json").plan == first.plan
    with pytest.raises(InputError, match=r"plan: is for x\.1, but dims declare n"):
        ShapeBuckets(lambda x: x, {"x": {0: "n"}}, plan=tmp_path / "plan.json", backend="eager")
    with pytest.raises(InputError, match="cannot be read"):
        buckets(sample=None, plan=tmp_path / "none.json")


def test_planning_anew_follows_the_traffic(buckets):
    runner = buckets()
    for _ in range(30):
        runner(torch.randn(2, 17, 4))
    held = runner.statistics().num_graphs
    plan = runner.replan()
    assert plan.axes[0].edges == [17]
    assert runner.statistics().num_graphs == 0 != held
    assert runner(torch.randn(2, 17, 4)).shape == (2, 17, 4)


def test_precompiled_buckets_serve_all_traffic_without_compiling(buckets):
    runner = buckets()
    state = torch.get_rng_state()
    with torch.no_grad():
        before = runner.precompile(torch.randn(2, 9, 4).zero_())
        assert before.precompiled == len(runner.plan.cells)
        assert before.checks == before.precompiled
        assert before.calls == before.misses == 0
        with collect() as collector:
            for size in range(5, 41):
                runner(torch.randn(2, size, 4))
    assert list(collector.log().entries) == []
    after = runner.statistics()
    assert after.hits == after.calls == 36
    assert after.misses == 0
    assert after.hit_rate == 1
    assert not torch.equal(state, torch.get_rng_state())


def test_precompiling_leaves_the_random_state_and_the_modes_as_they_were(models, buckets):
    model = models.Pointwise().train()
    runner = buckets(model)
    x = torch.randn(2, 9, 4)
    state = torch.get_rng_state()
    runner.precompile(x, backward=True)
    assert torch.equal(state, torch.get_rng_state())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_precompiling_needs_a_plan_that_fits(buckets):
    with pytest.raises(InputError, match="still being learned"):
        buckets(sample=None).precompile(torch.randn(2, 9, 4))
    many = BucketPlan(axes=[AxisPlan(name="x.1", edges=[1, 2, 3, 4])], cells=[[1], [2], [3], [4]])
    with pytest.raises(InputError, match="4 buckets but max_graphs is 3"):
        buckets(sample=None, plan=many).precompile(torch.randn(2, 9, 4))


@pytest.mark.parametrize("kind", ["recurrent", "disabled"])
@pytest.mark.parametrize("precompiled", [True, False])
def test_a_model_of_which_nothing_is_compiled_runs_unpadded_and_says_so(kind, precompiled, lengths):
    torch.manual_seed(0)
    seen = []

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(4, 8, batch_first=True)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count += 1
            seen.append(x.shape[1])
            return self.layer(x)

    if kind == "disabled":
        Plain.forward = torch.compiler.disable(Plain.forward)
    model = Plain()
    runner = ShapeBuckets(model, {"x": [1]}, sample=lengths([8, 16]), backend="eager")
    if kind == "recurrent":
        model.forward = lambda x: model.layer(x)  # noqa: PLW0108 - only what Dynamo leaves alone
    if precompiled:
        runner.precompile(torch.randn(2, 9, 4))
        assert model.count == 0
    seen.clear()
    for size in (5, 8, 12):
        x = torch.randn(2, size, 4)
        equal(runner(x), model.layer(x))
    statistics = runner.statistics()
    assert statistics.num_graphs == statistics.misses == statistics.precompiled == 0
    assert statistics.recompiles_avoided == statistics.padding_share == statistics.checks == 0
    assert statistics.fallback_calls == 3
    assert [note[:31] for note in statistics.notes] == ["torch.compile makes no graph of"]
    if kind == "disabled":
        assert model.count == 3
        assert seen[-2:] == [8, 12]


@pytest.mark.exhaustive
def test_a_model_that_was_compiled_elsewhere_is_not_taken_for_one_without_graphs(models):
    if not isolates_recompiles():
        pytest.skip("this torch cannot keep functions behind graph breaks apart")
    model = models.Broken()
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=[8])])
    torch.compile(model, backend="eager", dynamic=False)(torch.randn(2, 8, 4))
    runner = ShapeBuckets(model, {"x": [1]}, plan=plan, backend="eager")
    x = torch.randn(2, 5, 4)
    equal(runner(x), model(x))
    assert runner.statistics().num_graphs == 1


def test_the_least_recently_used_graph_goes_first(lengths, buckets):
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=[10, 20, 30])])
    runner = buckets(sample=None, plan=plan, max_graphs=2)
    for size in (10, 20, 10, 30):
        runner(torch.randn(2, size, 4))
    statistics = runner.statistics()
    assert statistics.evictions == 1
    assert [use.edges["x.1"] for use in statistics.buckets] == [10, 30]
    runner(torch.randn(2, 20, 4))
    assert runner.statistics().misses == 4


def test_graphs_beyond_the_memory_limit_go(buckets):
    class Meter:
        device, source, now = "cpu", "a test", 0

        def reset_peak(self):
            raise AssertionError

        def current(self):
            self.now += 300
            return self.now

        peak = current

    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=[10, 20, 30])])
    runner = buckets(sample=None, plan=plan, meter=Meter(), max_bytes=700)
    for size in (10, 20, 30):
        runner(torch.randn(2, size, 4))
    statistics = runner.statistics()
    assert statistics.held_bytes == 600
    assert statistics.evictions == 1
    assert [use.edges["x.1"] for use in statistics.buckets] == [20, 30]


def test_sizes_beyond_the_last_edge_go_to_the_dynamic_graph(buckets):
    runner = buckets()
    with collect() as collector:
        for size in (41, 55, 70, 90):
            x = torch.randn(2, size, 4)
            equal(runner(x), runner.model(x))
    assert graphs_of(collector.log()) == 1
    assert runner.statistics().fallback_calls == 4


def test_sizes_beyond_the_last_edge_are_refused_or_cut_on_demand(buckets):
    x = torch.randn(2, 50, 4)
    with pytest.raises(InputError, match=r"x\.1 50: beyond the last edge; legal is up to x\.1 40"):
        buckets(too_long="error")(x)
    cut = buckets(too_long="crop")
    equal(cut(x), cut.model(x[:, :40]))
    assert cut.statistics().cropped_calls == 1


def test_inputs_that_rarely_differ_in_something_else_get_no_graph(buckets):
    runner = buckets(rare_calls=3)
    runner(torch.randn(2, 9, 4))
    for _ in range(2):
        runner(torch.randn(3, 9, 4))
    assert runner.statistics().fallback_calls == 2
    runner(torch.randn(3, 9, 4))
    statistics = runner.statistics()
    assert statistics.fallback_calls == 2
    assert statistics.num_graphs == 2


def test_statistics_add_up(lengths, buckets):
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=[10, 20])])
    runner = buckets(sample=None, plan=plan)
    sizes = [5, 10, 15, 20, 5, 15] * 3
    for size in sizes:
        runner(torch.randn(2, size, 4))
    statistics = runner.statistics()
    padded = [10 if size <= 10 else 20 for size in sizes]
    assert statistics.calls == len(sizes) == statistics.hits + statistics.misses
    assert statistics.misses == 2
    assert statistics.distinct_sizes == 4
    assert statistics.recompiles_avoided == 2
    assert statistics.padding_share == pytest.approx(1 - sum(sizes) / sum(padded))
    assert statistics.checks == 2
    assert statistics.max_error <= 1e-5
    assert statistics.compile_s > 0
    assert statistics.copying_s > 0
    steps = {use.edges["x.1"]: use.step_s for use in statistics.buckets}
    lost = sum(steps[edge] * (1 - size / edge) for size, edge in zip(sizes, padded, strict=True))
    assert statistics.lost_s == pytest.approx(lost)
    assert sum(use.calls for use in statistics.buckets) == len(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("Pointwise", marks=pytest.mark.exhaustive), "Broken"])
def test_threads_share_the_graphs(kind, models, buckets):
    if kind == "Broken" and not isolates_recompiles():
        pytest.skip("this torch cannot keep functions behind graph breaks apart")
    runner = buckets(getattr(models, kind)(), max_graphs=3)
    if kind == "Broken":
        runner.precompile(torch.randn(2, 9, 4))
    inputs = [torch.randn(2, size, 4) for size in range(5, 41)] * 3
    expected = [runner.model(x) for x in inputs]
    results, failures = {}, []
    barrier = threading.Barrier(6)

    def work(offset):
        try:
            barrier.wait()
            for place in range(offset, len(inputs), 6):
                results[place] = runner(inputs[place])
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            failures.append(error)

    with collect() as collector:
        threads = [threading.Thread(target=work, args=(offset,)) for offset in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    for place, result in results.items():
        equal(result, expected[place])
    statistics = runner.statistics()
    assert len(results) == len(inputs) == statistics.calls
    assert statistics.hits + statistics.misses == statistics.calls
    assert statistics.num_graphs == 3
    assert graphs_of(collector.log()) == statistics.misses == (0 if kind == "Broken" else 3)
    assert list(collector.log().of("recompile_reasons")) == []


@pytest.mark.slow
def test_gradients_are_those_of_the_model(models, buckets):
    model = models.Attention().train()
    runner = buckets(model, sample=[{"x": (2, size, 8)} for size in range(5, 41)], backend="aot_eager")
    for size in (5, 12, 39):
        x = torch.randn(2, size, 8, requires_grad=True)
        grad = torch.autograd.grad(runner(x).square().sum(), [x, *model.parameters()])
        wanted = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
        torch.testing.assert_close(grad, wanted, rtol=1e-4, atol=1e-5)


def test_a_graph_is_kept_for_each_mode(buckets):
    runner = buckets()
    x = torch.randn(2, 9, 4)
    runner(x)
    with torch.no_grad():
        for _ in range(3):
            assert not runner(x).requires_grad
    assert runner(x).requires_grad
    assert runner.statistics().num_graphs == 2


@pytest.mark.parametrize("made_inside", [True, False])
def test_inference_mode_takes_one_graph_for_padded_and_fitting_inputs(made_inside, buckets):
    runner = buckets(sample=None, plan=BucketPlan(axes=[AxisPlan(name="x.1", edges=[8])], cells=[[8]]))
    outside = [torch.randn(2, size, 4) for size in (5, 8, 7)]
    with torch.inference_mode(), collect() as collector:
        runner.precompile(outside[0].clone() if made_inside else outside[0])
        for x in outside:
            equal(runner(x.clone() if made_inside else x), runner.model(x))
    assert graphs_of(collector.log()) == 1
    assert runner.statistics().num_graphs == 1


def test_images_keep_their_memory_format():
    model = nn.Conv2d(3, 4, 1).to(memory_format=torch.channels_last)
    plan = BucketPlan(axes=[AxisPlan(name="width", edges=[16])])
    runner = ShapeBuckets(model, {"input": {3: "width"}}, plan=plan, backend="eager")
    for width in (9, 16, 12):
        x = torch.randn(2, 3, 8, width).to(memory_format=torch.channels_last)
        equal(runner(x), model(x))
    assert runner.statistics().num_graphs == 1


@pytest.mark.exhaustive
def test_edges_by_hand_are_kept_and_nothing_is_learned(models):
    model = models.Pointwise()
    runner = ShapeBuckets(model, {"x": {1: [8, 12, 20]}}, backend="eager", learn_calls=1)
    assert runner.plan.axes == [AxisPlan(name="x.1", edges=[8, 12, 20])]
    for size in (3, 9, 15, 20):
        x = torch.randn(2, size, 4)
        equal(runner(x), model(x))
    statistics = runner.statistics()
    assert sorted(use.edges["x.1"] for use in statistics.buckets) == [8, 12, 20]
    assert statistics.warmup_calls == 0
    assert runner.precompile(torch.randn(3, 9, 4)).precompiled == 3
    with pytest.raises(InputError, match="replan: the edges are given in dims"):
        runner.replan()
    known = ShapeBuckets(model, {"x": {1: [8, 12]}}, sample=[{"x": (2, 9, 4)}], backend="eager")
    assert known.plan.cells == [[12]]


def test_inputs_with_equal_edges_vary_together_and_others_for_themselves():
    together = ShapeBuckets(lambda x, y: x + y, {"x": {0: [8, 16]}, "y": {0: [8, 16]}}, backend="eager")
    assert [axis.name for axis in together.plan.axes] == ["x.0"]
    assert together(torch.ones(5), torch.ones(5)).tolist() == [2.0] * 5
    apart = ShapeBuckets(lambda x: x * 2, {"x": {0: (2, 4), 1: [8, 16]}}, backend="eager")
    assert apart.plan.cells == [[2, 8], [2, 16], [4, 8], [4, 16]]
    assert apart(torch.ones(3, 9)).shape == (3, 9)


@pytest.mark.parametrize("edges", [[], [8, 8], [16, 8], [0, 8], [8.0], ["8"], [True]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(InputError, match=r"dims: 'x': got .*\{1: \[128, 160, 200\]\}"):
        ShapeBuckets(lambda x: x, {"x": {1: edges}}, backend="eager")


def test_edges_are_given_for_all_sizes_or_none_and_not_beside_a_plan():
    with pytest.raises(InputError, match=r"edges are given for x\.1 but not for rows"):
        ShapeBuckets(lambda x: x, {"x": {0: "rows", 1: [8]}}, backend="eager")
    plan = BucketPlan(axes=[AxisPlan(name="x.1", edges=[8])])
    with pytest.raises(InputError, match="the edges are given in dims already"):
        ShapeBuckets(lambda x: x, {"x": {1: [8]}}, plan=plan, backend="eager")


def test_a_dimension_that_an_input_does_not_have_is_told_with_the_declaration():
    runner = ShapeBuckets(lambda x: x, {"x": [9]}, backend="eager")
    with pytest.raises(InputError, match=r"the shape \[2, 3\], without the dimension 9 .*; legal .* -2 to 1"):
        runner(torch.zeros(2, 3))


def test_settings_that_do_not_exist_are_told(buckets):
    with pytest.raises(InputError, match=r"max_graph: no such setting.*did you mean 'max_graphs'"):
        buckets(max_graph=2)
    with pytest.raises(InputError, match="too_long: got 'cut'; legal are dynamic, crop, error"):
        buckets(too_long="cut")
    with pytest.raises(InputError, match="the model has no input 'y'"):
        ShapeBuckets(nn.Linear(2, 2), {"y": [0]})
    with pytest.raises(InputError, match="compiled already"):
        ShapeBuckets(torch.compile(nn.Linear(2, 2), backend="eager"), {"input": [0]})
    with pytest.raises(InputError, match="dims: nothing is declared"):
        ShapeBuckets(nn.Linear(2, 2), {})
    with pytest.raises(InputError, match="sample and plan"):
        buckets(plan=BucketPlan(axes=[]))
