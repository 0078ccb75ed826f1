"""What changed between two traces is found where it changed, with its figure; a verdict is given only where it holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pyrometer.errors import IncomparableError
from pyrometer.record import from_json, to_json
from pyrometer.trace.difference.change import change, run_margin
from pyrometer.trace.difference.compare import SAME_TRACE, decide, diff_traces
from pyrometer.trace.difference.record import TraceDiff
from pyrometer.trace.naming.families import family_of
from pyrometer.trace.reading.read import read_trace

MACHINE = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}]}
OTHER = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}


def test_one_slower_operator_is_found_at_its_node_with_its_figure(record):
    diff = diff_traces(record("a.json"), record("b.json", times={"aten::linear": 40}))
    assert [node.path[-1] for node in diff.nodes] == ["aten::linear", "aten::linear_kernel"]
    slower = diff.nodes[1]
    assert slower.path == ["nn.Module: Net_0", "aten::linear", "aten::linear_kernel"]
    assert slower.device.ratio == pytest.approx(2, rel=0.01)
    assert slower.device.delta_ns == pytest.approx(20_000)
    assert slower.device.ci_low < 2 < slower.device.ci_high
    assert diff.outcome == "slower"
    assert diff.sentence.startswith("1.14× slower (1.1")
    assert diff.kernels[0].name == "aten::linear_kernel"
    assert diff.operators[0].name == "aten::linear"


def test_the_changes_of_all_nodes_add_up_to_the_change_of_the_whole(record):
    a, b = record("a.json"), record("b.json", times={"aten::linear": 40, "aten::softmax": 10})
    diff = diff_traces(a, b, top=1000)
    work = [one.of_kind("kernel")["dur_ns"].sum() / 6 for one in (a, b)]
    assert sum(node.device.delta_ns for node in diff.nodes) == pytest.approx(work[1] - work[0])
    parts = [sum(getattr(part, side) for part in diff.parts) for side in ("a_ns", "b_ns")]
    assert parts == pytest.approx([diff.step.a_ns, diff.step.b_ns])


def test_parts_of_a_step_that_is_slow_again_and_again_count_by_their_means(new_builder, tmp_path):
    def trace(name, slow_us):
        builder, at = new_builder(tmp_path), 0.0
        for step in range(20):
            took = slow_us if step % 4 == 3 else 100
            builder.annotate(f"ProfilerStep#{step}", at, took + 10)
            builder.op("aten::mm", at, took)
            at += took + 10
        return builder.read(name)

    diff = diff_traces(trace("a.json", 900), trace("b.json", 1300))
    assert (diff.step.a_ns, diff.step.b_ns) == pytest.approx((310_000, 410_000))
    for side in ("a_ns", "b_ns"):
        assert sum(getattr(part, side) for part in diff.parts) == pytest.approx(getattr(diff.step, side))


def test_the_same_program_has_not_changed(record):
    diff = diff_traces(record("a.json"), record("b.json"))
    assert (diff.outcome, diff.sentence) == ("same", SAME_TRACE)
    assert diff.nodes == []
    assert "bench A --vs B" in diff.note


def test_faster_reads_as_old_over_new(record):
    diff = diff_traces(record("a.json", times={"aten::conv2d": 200}), record("b.json"))
    assert diff.outcome == "faster"
    assert diff.sentence.startswith("2.")
    assert "× faster (" in diff.sentence


LOADER_STEPS_MS = (
    (176.078, 173.992, 176.918, 181.259, 176.468, 164.261),
    (181.565, 123.884, 126.824, 126.272, 163.461, 116.146),
)
"""Steps of a ResNet-50, published with Kineto: the loader without and with four workers, which start in the first step."""


def test_slow_steps_of_a_few_do_not_hide_what_the_others_show():
    a, b = (np.array([round(1e6 * ms) for ms in side]) for side in LOADER_STEPS_MS)
    outcome, sentence = decide(change(a, b), run_margin(a, b), (6, 6))
    assert outcome == "faster"
    assert sentence.startswith("1.39× faster (1.1")


@pytest.mark.parametrize("period", [2, 3, 4])
def test_steps_in_bursts_count_by_their_mean(period):
    """A loader whose workers deliver several batches at once: the step that waits pays for the others."""
    a = np.full(40, 21_000_000) + np.arange(40) * 1000
    b = np.where(np.arange(40) % period, 1_100_000, 17_000_000) + np.arange(40) * 1000
    step = change(a, b)
    assert step.ratio == pytest.approx(b.mean() / a.mean())
    assert step.ci_low < b.mean() / a.mean() < step.ci_high
    outcome, sentence = decide(step, run_margin(a, b, least=0.15), (40, 40))
    assert outcome == "faster"
    assert sentence.startswith(f"{a.mean() / b.mean():.3g}"[:3])


def test_an_undecided_ratio_reads_in_the_direction_of_its_value():
    step = change(np.array([20, 5, 30, 21, 4]), np.array([8, 20, 3, 9, 2]))
    outcome, sentence = decide(step, 12.0, (5, 5))
    assert outcome == "undecided"
    assert "× faster (" in sentence
    assert "the factor of 13.0 by which two runs" in sentence


def test_one_slow_step_is_no_change():
    a = np.array([100, 101, 99, 100, 102, 100] * 2) * 10**6
    b = np.append(a[:11], 10**10)
    assert decide(change(a, b), run_margin(a, b), (12, 12))[0] == "same"


def test_what_takes_place_in_few_steps_counts_by_its_mean():
    a, b = np.array([0, 0, 0, 400]), np.array([0, 0, 0, 200])
    assert (change(a, b).a_ns, change(a, b).b_ns) == (100, 50)


def test_below_three_steps_there_is_no_interval_and_it_says_so(record):
    diff = diff_traces(record("a.json", steps=2), record("b.json", steps=6, times={"aten::linear": 90}))
    assert diff.outcome == "undecided"
    assert diff.step.ci_low is None
    assert "from 2 and 6 steps" in diff.sentence


def test_an_operator_that_took_anothers_place_is_added_and_removed_below_their_caller(record):
    diff = diff_traces(
        record("a.json"),
        record("b.json", rename={"aten::softmax": "aten::gelu"}, times={"aten::softmax": 60}),
    )
    at = next(node for node in diff.nodes if node.added)
    assert at.path == ["nn.Module: Net_0"]
    assert (at.added, at.removed) == (["aten::gelu"], ["aten::softmax"])
    assert at.device.delta_ns == pytest.approx(40_000)


def test_devices_that_differ_leave_a_description_and_no_verdict(record):
    diff = diff_traces(
        record("a.json", head=MACHINE), record("b.json", head=OTHER, times={"aten::linear": 90})
    )
    assert diff.outcome == "undecided"
    assert "NVIDIA A100 against NVIDIA H100" in diff.sentence
    assert diff.nodes[0].path[-1] == "aten::linear"


def test_other_shapes_are_other_work(record):
    diff = diff_traces(record("a.json", dims=[[8, 3]]), record("b.json", dims=[[16, 3]]))
    assert [difference.field for difference in diff.differences] == ["shapes"]
    assert diff.outcome == "undecided"


def test_options_that_slow_the_host_down_are_named(record):
    diff = diff_traces(record("a.json"), record("b.json", module=False))
    assert {difference.field for difference in diff.differences} == {"with_stack"}
    assert diff.outcome == "undecided"


def test_versions_and_ranks_are_told_and_do_not_hinder(record):
    diff = diff_traces(
        record(
            "a.json", head={"cuda_runtime_version": "12.4", "distributedInfo": {"rank": 0, "world_size": 2}}
        ),
        record(
            "b.json", head={"cuda_runtime_version": "12.8", "distributedInfo": {"rank": 1, "world_size": 2}}
        ),
    )
    assert {difference.field for difference in diff.differences} == {"cuda_runtime_version", "rank"}
    assert diff.outcome == "same"


def test_jobs_of_other_sizes_get_no_verdict(record):
    diff = diff_traces(
        record("a.json", head={"distributedInfo": {"rank": 0, "world_size": 2}}),
        record("b.json", head={"distributedInfo": {"rank": 0, "world_size": 8}}),
    )
    assert diff.outcome == "undecided"


def test_different_programs_are_refused(record):
    other = {
        name: f"my::op{i}"
        for i, name in enumerate(("aten::conv2d", "aten::batch_norm", "aten::linear", "aten::softmax"))
    }
    a, b = record("a.json", device=False), record("b.json", device=False, rename=other)
    renamed = b.tables["events"]["name"].str.replace("_inner", "_other")
    b.tables["events"] = b.tables["events"].with_columns(name=renamed)
    with pytest.raises(IncomparableError, match="different programs"):
        diff_traces(a, b)


def test_an_empty_trace_is_refused(record, builder):
    with pytest.raises(IncomparableError, match="holds neither operators nor device work"):
        diff_traces(record("a.json"), builder.read())


def test_on_the_cpu_operators_show_the_change(record):
    diff = diff_traces(
        record("a.json", device=False), record("b.json", device=False, times={"aten::batch_norm": 70})
    )
    assert diff.nodes[0].path[-1] == "aten::batch_norm"
    assert diff.nodes[0].host.delta_ns == pytest.approx(50_000)


def test_eager_against_compiled_compares_phases_and_kernels(new_builder, tmp_path):
    def trace(name, compiled):
        builder = new_builder(tmp_path)
        for i in range(4):
            at = i * 1000.0
            builder.annotate(f"ProfilerStep#{i}", at, 1000)
            if compiled:
                builder.annotate(f"## Call CompiledFxGraph f{i}abc ##", at + 10, 200)
                builder.launch("triton_poi_fused_relu_0", at + 20, at + 40, 100)
            else:
                for k, op in enumerate(("aten::mul", "aten::add", "aten::relu")):
                    builder.op(op, at + 10 + k * 50, 40)
                    builder.launch(f"{op}_kernel", at + 20 + k * 50, at + 40 + k * 50, 45)
        return builder.read(name)

    diff = diff_traces(trace("eager.json", compiled=False), trace("compiled.json", compiled=True))
    assert [difference.field for difference in diff.differences] == ["compilation"]
    forward = next(group for group in diff.groups if group.name == "forward")
    assert (forward.device.a_ns, forward.device.b_ns) == (135_000, 100_000)
    assert {kernel.name: kernel.status for kernel in diff.kernels}["triton_poi_fused_relu_0"] == "added"


def test_it_survives_json(record):
    diff = diff_traces(record("a.json"), record("b.json", times={"aten::linear": 40}))
    assert from_json(TraceDiff, to_json(diff)) == diff


def test_traces_without_steps_or_devices_are_compared_as_a_whole(new_builder, tmp_path):
    def trace(name, dur):
        builder = new_builder(tmp_path)
        builder.op("aten::mm", 0, dur)
        builder.op("aten::add", dur, 10)
        return builder.read(name)

    diff = diff_traces(trace("a.json", 10), trace("b.json", 30))
    assert diff.step.ratio == pytest.approx(2)
    assert diff.outcome == "undecided"


@pytest.mark.parametrize("steps", [4, pytest.param(8, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    ("between", "within"),
    [
        (0.02, 0.08),
        pytest.param(0.014, 0.03, marks=pytest.mark.exhaustive),
        pytest.param(0.1, 0.2, marks=pytest.mark.exhaustive),
    ],
)
def test_two_runs_of_one_program_are_hardly_ever_told_apart(between, within, steps):
    """Steps scatter around a level that itself differs from run to run."""
    generator = np.random.default_rng(0)
    wrong = 0
    for _ in range(2000):
        a, b = (
            (1e7 * np.exp(generator.normal(generator.normal(0, between), within, size=steps))).astype(
                np.int64
            )
            for _ in range(2)
        )
        wrong += decide(change(a, b), run_margin(a, b), (steps, steps))[0] in {"faster", "slower"}
    assert wrong / 2000 < 0.01


def test_a_change_that_matters_is_found_in_steps_that_scatter():
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(500):
        a, b = (
            np.exp(generator.normal(level, 0.03, size=8)).astype(np.int64)
            for level in (16, 16 + np.log(1.25))
        )
        found += decide(change(a, b), run_margin(a, b), (8, 8))[0] == "slower"
    assert found / 500 > 0.95


def test_the_interval_covers_the_truth():
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        a = np.exp(generator.normal(16, 0.1, size=6)).astype(np.int64)
        b = np.exp(generator.normal(16 + np.log(1.5), 0.2, size=5)).astype(np.int64)
        time_change = change(a, b)
        held += time_change.ci_low <= 1.5 <= time_change.ci_high
    assert 0.93 < held / 2000 < 0.99


def test_workers_made_the_loader_fast(real_traces):
    a, b = (read_trace(real_traces / f"legacy_resnet50_workers{n}.json.gz").ranks[0] for n in (0, 4))
    diff = diff_traces(a, b)
    assert diff.nodes[0].path == ["enumerate(DataLoader)#__next__"]
    assert diff.nodes[0].host.ratio < 0.05
    data = next(part for part in diff.parts if part.name == "data")
    assert data.b_ns < 0.05 * data.a_ns
    assert diff.outcome == "faster"
    assert diff.step.ratio == pytest.approx(0.72, abs=0.02)


def test_two_vendors_run_the_same_model_with_other_kernels(real_traces):
    a, b = (read_trace(real_traces / f"{name}_bert_small.json.gz").ranks[0] for name in ("h100", "mi300"))
    diff = diff_traces(a, b)
    assert "H100" in diff.sentence
    assert "MI300X" in diff.sentence
    attention = [node for node in diff.nodes if node.replaced_by == "attn_fwd"]
    assert attention
    assert all(node.status == "replaced" for node in attention)


def test_added_operators_of_a_small_trace_are_named(real_traces):
    a, b = (read_trace(real_traces / f"tiny_diff_{name}.json.gz").ranks[0] for name in ("base", "test"))
    diff = diff_traces(a, b)
    assert {"All2All_Pooled_Req", "CatBackward0", "AddmmBackward0"} <= set(diff.nodes[0].added)
    lost = next(kernel for kernel in diff.kernels if kernel.calls_b < kernel.calls_a)
    assert (lost.calls_a, lost.calls_b) == (1.5, 1.0)


@pytest.fixture
def host_record(new_builder, tmp_path):
    """Writes a trace of a host: steps of a few operators that long, in microseconds."""

    def write(name, *lengths):
        builder, at = new_builder(tmp_path), 0.0
        for step in range(6):
            builder.annotate(f"ProfilerStep#{step}", at, sum(lengths) + 10 * len(lengths))
            for number, length in enumerate(lengths):
                builder.op(f"aten::op{number}", at, length + step % 3)
                at += length + 10
        return builder.read(name)

    return write


OPERATORS_US = (2000, 300, 200, 60, 40, 30, 30)


def test_where_operators_of_all_kinds_took_longer_the_machine_may_be_slower(host_record):
    slowed = (
        length * factor
        for length, factor in zip(OPERATORS_US, (1.9, 1.7, 1.0, 2.1, 1.6, 1.4, 1.1), strict=True)
    )
    diff = diff_traces(host_record("a.json", *OPERATORS_US), host_record("b.json", *slowed))
    assert diff.outcome == "undecided"
    assert re.match(
        r"undecided: 1\.\d+× slower \(.*\), but operators of all kinds changed alike", diff.sentence
    )


@pytest.mark.parametrize(
    "factors",
    [(2, 2, 2, 1, 1, 1, 1), (1, 10, 1, 1, 1, 1, 1), (1, 9, 2, 2, 2, 2, 2)],
    ids=["large", "one", "small"],
)
def test_where_operators_stayed_as_they_were_the_program_is_slower(host_record, factors):
    slowed = (length * factor for length, factor in zip(OPERATORS_US, factors, strict=True))
    assert (
        diff_traces(host_record("a.json", *OPERATORS_US), host_record("b.json", *slowed)).outcome == "slower"
    )


def test_where_all_of_a_few_operators_took_longer_the_machine_may_be_slower(host_record):
    a = host_record("a.json", 300, 200)
    assert diff_traces(a, host_record("b.json", 600, 380)).outcome == "undecided"
    assert diff_traces(a, host_record("c.json", 900, 200)).outcome == "slower"
    assert diff_traces(host_record("d.json", 300), host_record("e.json", 600)).outcome == "slower"


@pytest.mark.parametrize("name", ["aten::one_hot", "aten::unfold", "aten::gather"])
def test_indexing_is_neither_an_embedding_nor_a_convolution(name):
    assert not family_of(name)


@pytest.mark.measuring
def test_the_same_program_recorded_twice_is_not_called_faster_or_slower(tmp_path):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    x = torch.randn(64, 256)

    def recorded(name):
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=2, warmup=2, active=12, repeat=1),
            on_trace_ready=lambda p: p.export_chrome_trace(str(tmp_path / name)),
        ) as profiler:
            for _ in range(16):
                for _ in range(20):
                    model(x)
                profiler.step()
        return read_trace(tmp_path / name).ranks[0]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcomes = [diff_traces(recorded("a.json"), recorded("b.json")).outcome for _ in range(8)]
    finally:
        torch.set_num_threads(threads)
    assert sum(outcome in {"faster", "slower"} for outcome in outcomes) <= 2
