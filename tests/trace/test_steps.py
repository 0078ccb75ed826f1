"""Steps are found from what marks them, else from what repeats; never in the layers of one model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.kinds import Kind
from pyrometer.trace.linking.cycles import find_cycle, find_cycle_of_runs
from pyrometer.trace.linking.launches import find_launches
from pyrometer.trace.linking.steps import find_steps
from pyrometer.trace.naming.engine_names import STEP as ENGINE_STEP
from pyrometer.trace.naming.patterns import STEP_MARK
from pyrometer.trace.reading.read import read_trace

FORWARD = ["aten::conv2d", "aten::batch_norm", "aten::relu", "aten::linear"]
LAYER = ["aten::layer_norm", "aten::linear", "aten::softmax", "aten::linear"]


def run(builder, names, *, at=0.0, dur=8.0, gap=2.0, tid=100):
    """Operators one after another; gives the time after the last."""
    for name in names:
        builder.op(name, at, dur, tid=tid)
        at += dur + gap
    return at


def spans(steps):
    return [(start / 1000, end / 1000) for start, end in steps.select("start_ns", "end_ns").rows()]


def test_what_the_profiler_marked_comes_first(builder):
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i + 4}", i * 100, 90)
        builder.annotate("Optimizer.step#SGD.step", i * 100 + 50, 10)
    steps = builder.read().steps
    assert steps["name"].to_list() == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]
    assert steps["source"].to_list() == ["profiler"] * 3
    assert spans(steps) == [(0, 90), (100, 190), (200, 290)]


def test_old_files_mark_steps_as_operators(builder):
    for i in range(2):
        builder.add("Operator", f"ProfilerStep#{i}", i * 100, 100)
    assert builder.read().steps.height == 2


def test_of_several_threads_with_marks_the_fullest_counts_and_overlaps_are_cut(builder):
    for i in range(3):
        builder.annotate(f"ProfilerStep#{i}", i * 100, 110)
        builder.op("aten::mm", i * 100 + 5, 20)
    builder.annotate("ProfilerStep#1", 90, 130, tid=7)
    steps = builder.read().steps
    assert spans(steps) == [(0, 100), (100, 200), (200, 310)]


def test_a_mark_within_the_same_mark_is_no_second_step(builder):
    builder.annotate("ProfilerStep#1", 0, 100)
    builder.annotate("ProfilerStep#1", 10, 50)
    assert builder.read().steps["name"].to_list() == ["ProfilerStep#1"]


def test_optimizer_steps_close_steps(builder):
    at = 0.0
    for _ in range(4):
        at = run(builder, FORWARD, at=at)
        builder.annotate("Optimizer.step#Adam.step", at, 10)
        at += 20
    steps = builder.read().steps
    assert steps["source"].to_list() == ["optimizer"] * 4
    assert spans(steps) == [(0, 50), (50, 110), (110, 170), (170, 230)]


def test_optimizers_that_take_turns_make_one_step(builder):
    at = 0.0
    for _ in range(2):
        for name in ("generator", "critic"):
            at = run(builder, FORWARD, at=at)
            builder.annotate(f"Optimizer.step#{name}.step", at, 10)
            at += 20
    assert builder.read().steps.height == 2


def test_loader_iterations_make_steps_and_an_unfinished_last_one_does_not(builder):
    at = 0.0
    for i in range(4):
        builder.annotate("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, 10)
        at = run(builder, FORWARD if i < 3 else [], at=at + 10)
    steps = builder.read().steps
    assert steps["source"].to_list() == ["loader"] * 3
    assert spans(steps) == [(0, 50), (50, 100), (100, 150)]


@pytest.mark.parametrize("names", [["step 1", "step 2", "step 3"], ["iteration"] * 3])
def test_annotations_that_repeat_make_steps(builder, names):
    at = 0.0
    for name in names:
        builder.annotate(name, at, 40)
        at = run(builder, FORWARD, at=at)
    steps = builder.read().steps
    assert steps["source"].to_list() == ["annotation"] * 3
    assert spans(steps)[:2] == [(0, 40), (40, 80)]


def test_phases_in_turn_make_steps(builder):
    at = 0.0
    for _ in range(3):
        for phase in ("forward", "backward", "update"):
            builder.annotate(phase, at, 40)
            at = run(builder, FORWARD, at=at)
    assert builder.read().steps.height == 3


@pytest.mark.parametrize("name", ["layer", "nccl:all_reduce", "## Call CompiledFxGraph fxyz ##"])
def test_annotations_of_layers_graphs_and_collectives_are_no_steps(builder, name):
    at = run(builder, ["aten::embedding", "aten::add", "aten::arange", "aten::dropout"])
    for _ in range(4):
        builder.annotate(name, at, 40)
        at = run(builder, LAYER, at=at)
    run(
        builder,
        ["aten::norm", "aten::head", "aten::gelu", "aten::tanh", "aten::log_softmax", "aten::max"],
        at=at,
    )
    assert builder.read().steps.is_empty()


def test_a_loop_of_inferences_is_found_by_its_cycle(builder):
    at = run(builder, ["aten::linear", "aten::tanh"])  # the end of one that began before the recording
    model = ["aten::embedding", *LAYER * 6, "aten::tanh"]
    for _ in range(5):
        at = run(builder, model, at=at)
    steps = builder.read().steps
    assert steps["source"].to_list() == ["cycle"] * 5
    assert {end - start for start, end in spans(steps)[:-1]} == {260}
    assert (steps["start_ns"][1:] == steps["end_ns"][:-1]).all()


def test_a_single_inference_of_a_deep_model_has_no_steps(builder):
    run(builder, ["aten::embedding", *LAYER * 24, "aten::layer_norm", "aten::tanh", "aten::linear"])
    assert builder.read().steps.is_empty()


def test_layers_between_an_embedding_and_a_norm_that_looks_like_a_layers_begin_are_no_steps(builder):
    run(builder, ["aten::embedding", "aten::add", *LAYER * 12, "aten::layer_norm"])
    assert builder.read().steps.is_empty()


def test_layers_inside_one_module_call_are_no_steps(builder):
    at = run(builder, LAYER * 8)
    assert builder.read("open.json").steps.height == 8
    builder.python("nn.Module: Transformer_0", -5, at + 10)
    assert builder.read("module.json").steps.is_empty()


def test_a_small_sequential_model_has_no_steps(builder):
    run(builder, ["aten::linear", "aten::relu"] * 4)
    assert builder.read().steps.is_empty()


def test_calls_of_one_model_are_steps_whatever_its_layers_look_like(builder):
    at = 0.0
    for _ in range(4):
        end = run(builder, LAYER * 6, at=at + 5)
        builder.python("nn.Module: Encoder_0", at, end - at)
        for i in range(6):
            builder.python(f"nn.Module: Layer_{i}", at + 5 + i * 40, 39)
        at = end
    steps = builder.read().steps
    assert steps["source"].to_list() == ["cycle"] * 4
    assert spans(steps)[1] == (245, 490)


def test_layers_that_are_called_one_by_one_are_no_steps(builder):
    at = 0.0
    for i in range(6):
        builder.python(f"nn.Module: Linear_{i}", at, 40)
        at = run(builder, ["aten::linear", "aten::gelu"], at=at)
    assert builder.read().steps.is_empty()


def test_two_repetitions_are_not_enough(builder):
    run(builder, FORWARD * 2)
    assert builder.read().steps.is_empty()


def test_what_follows_a_loop_is_no_obstacle_when_each_repetition_waits_for_the_device(builder):
    at = 0.0
    for _ in range(5):
        at = run(builder, FORWARD, at=at)
        builder.call("cudaStreamSynchronize", at, 5)
        at += 10
    run(builder, ["aten::stack", "aten::mean", "aten::std"], at=at)
    assert builder.read().steps.height == 5


def test_an_extra_operator_in_one_repetition_shifts_nothing(builder):
    model = [f"aten::op{i}" for i in range(30)]
    run(builder, [*model * 3, "aten::log", *model * 3])
    assert builder.read().steps.height == 6


def test_one_operator_per_parameter_is_not_a_step(builder):
    run(builder, [*["aten::mul_"] * 40, "aten::norm", *["aten::add_"] * 30, "aten::sqrt"] * 3)
    assert builder.read().steps.height == 3


def test_a_side_thread_does_not_decide(builder):
    run(builder, [f"aten::op{i}" for i in range(40)], dur=100)
    run(builder, FORWARD * 8, tid=7)
    assert builder.read().steps.is_empty()


def test_device_work_alone_shows_its_cycle(builder):
    at = 0.0
    for _ in range(4):
        for name in ("gemm", "softmax", "gelu"):
            builder.launch(name, at, at + 20, 10)
            at += 30
    steps = builder.read().steps
    assert steps.height == 4
    assert spans(steps)[0] == (0, 90)


def test_device_work_belongs_to_the_step_that_launched_it(builder):
    at = 0.0
    for _ in range(4):
        for name in ("gemm", "softmax", "gelu"):
            builder.launch(name, at, at + 100, 10)
            at += 30
    kernels = builder.read().of_kind(Kind.KERNEL.value)
    assert kernels["step"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_an_empty_trace_has_no_steps(builder):
    assert builder.read().steps.is_empty()


@given(
    pattern=st.lists(st.integers(0, 50), min_size=3, max_size=40, unique=True),
    repeats=st.integers(3, 30),
    before=st.lists(st.integers(100, 200), max_size=5, unique=True),
    after=st.lists(st.integers(201, 300), max_size=5, unique=True),
)
def test_the_period_of_any_sequence_is_found(pattern, repeats, before, after):
    cycle = find_cycle(np.array([*before, *pattern * repeats, *after], np.int64))
    assert cycle is not None
    assert cycle.period == len(pattern)
    assert cycle.starts.tolist() == [len(before) + i * len(pattern) for i in range(repeats)]
    assert (cycle.before, cycle.rest) == (len(before), len(after))


@given(
    pattern=st.lists(st.integers(0, 50), min_size=3, max_size=8, unique=True),
    counts=st.lists(st.integers(1, 9), min_size=3, max_size=12),
)
def test_runs_of_any_length_are_one_element(pattern, counts):
    ids = [x for count in counts for x in (pattern[0],) * count + tuple(pattern[1:])]
    cycle = find_cycle_of_runs(np.array(ids, np.int64))
    assert cycle is not None
    assert len(cycle.starts) == len(counts)


@given(st.permutations(range(60)))
def test_what_never_repeats_has_no_cycle(ids):
    assert find_cycle(np.array(ids, np.int64)) is None


MULTI = {
    "a100_ddp_nccl_3steps": 3,
    "legacy_resnet50_workers0": 6,
    "legacy_resnet50_workers4": 6,
    "v100_ns_5steps": 5,
}
SINGLE = [
    "h100_bert_small",
    "h100_vit",
    "mi300_bert_small",
    "rank_unavailable",
    "mi210_gpu_only",
    "b200_eager_pdl",
]


def without_marks(path: Path, pattern: str) -> pl.DataFrame:
    events = read_trace(path).ranks[0].tables["events"]
    kept = events.filter(~pl.col("name").str.contains(pattern).fill_null(value=False))
    return kept.with_columns(event=pl.int_range(pl.len(), dtype=pl.UInt32))


@pytest.mark.parametrize(("name", "num"), MULTI.items())
def test_real_training_shows_the_same_steps_without_its_marks(real_traces, name, num):
    path = real_traces / f"{name}.json.gz"
    marked = read_trace(path).ranks[0].steps
    events = without_marks(path, rf"{STEP_MARK}|^Optimizer|__next__|^##|^Distributed")
    rows = find_steps(events, find_launches(events))
    assert marked.height == rows.height == num
    usual = (marked["end_ns"] - marked["start_ns"]).median()
    assert (rows["end_ns"] - rows["start_ns"])[:-1].median() == pytest.approx(usual, rel=0.05)


@pytest.mark.parametrize("name", SINGLE)
def test_a_real_inference_has_no_false_steps(real_traces, name):
    events = without_marks(real_traces / f"{name}.json.gz", f"{STEP_MARK}|{ENGINE_STEP}")
    assert find_steps(events, find_launches(events)).is_empty()
