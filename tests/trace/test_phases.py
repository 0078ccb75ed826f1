"""Phases of a step: as annotated, or as derived from what a trace holds."""

from __future__ import annotations

import pytest

from pyrometer.trace.analysis.phases import phases
from pyrometer.trace.reading.read import read_trace

US = 1000


def host(found) -> dict[str, int]:
    return {phase.name: phase.host_ns for phase in found.phases}


def sources(found) -> dict[str, str]:
    return {phase.name: phase.source for phase in found.phases}


def test_annotated_phases(builder):
    for step, at in enumerate((0, 1000)):
        builder.annotate(f"ProfilerStep#{step}", at, 1000)
        builder.annotate("phase:data", at + 10, 90)
        builder.annotate("phase:forward", at + 100, 200)
        builder.op("aten::mm", at + 150, 100)
        builder.launch("gemm", at=at + 160, start=at + 300, dur=70)
        builder.annotate("phase:optimizer", at + 500, 50)
    found = phases(builder.read())
    assert found.annotated
    assert host(found) == {"data": 180 * US, "forward": 400 * US, "optimizer": 100 * US}
    assert {(phase.device_ns, phase.device_busy_ns, phase.num_kernels) for phase in found.phases} == {
        (0, 0, 0),
        (140 * US, 140 * US, 2),
    }
    first = found.steps[0]
    assert first.host_ns == {"data": 90 * US, "forward": 200 * US, "optimizer": 50 * US}
    assert (first.device_ns, first.other_ns) == ({"forward": 70 * US}, 660 * US)


def test_a_nested_phase_is_taken_out_of_the_outer_one(builder):
    builder.annotate("phase:forward", 0, 100)
    builder.annotate("phase:h2d", 20, 30)
    builder.op("aten::mm", 5, 90)
    assert host(phases(builder.read())) == {"forward": 70 * US, "h2d": 30 * US}


def test_backward_on_another_thread_belongs_to_the_phase_that_waits_for_it(builder):
    builder.annotate("phase:backward", 0, 100)
    builder.op("aten::mm", 10, 50, tid=200, **{"Sequence number": 1, "Fwd thread id": 1})
    builder.launch("gemm", at=20, start=60, dur=30, tid=200)
    builder.op("aten::loading", 10, 50, tid=300)
    (phase,) = phases(builder.read()).phases
    assert (phase.host_ns, phase.device_ns) == (100 * US, 30 * US)


def test_phases_without_annotations(builder):
    """As torch and a user's own names tell, on a trace without stacks."""
    builder.annotate("ProfilerStep#0", 0, 2000)
    builder.annotate("enumerate(DataLoader)#_Iter.__next__", 0, 100)
    builder.op("aten::to", 100, 50)
    builder.launch("Memcpy HtoD (Pinned -> Device)", at=110, start=130, dur=20, cat="gpu_memcpy")
    builder.annotate("Optimizer.zero_grad#SGD.zero_grad", 200, 20)
    builder.op("aten::addmm", 300, 100, **{"Sequence number": 1})
    node = {"tid": 200, "Sequence number": 1, "Fwd thread id": 1}
    builder.op("autograd::engine::evaluate_function: AddmmBackward0", 500, 200, **node)
    builder.op("AddmmBackward0", 510, 180, **node)
    builder.annotate("Optimizer.step#SGD.step", 800, 70)
    builder.op("aten::item", 900, 30)
    found = phases(builder.read())
    assert not found.annotated
    assert host(found) == {
        "data": 100 * US,
        "h2d": 50 * US,
        "zero_grad": 20 * US,
        "forward": 100 * US,
        "backward": 200 * US,
        "optimizer": 70 * US,
    }
    assert sources(found) == {
        "data": "loader",
        "h2d": "copy",
        "zero_grad": "optimizer",
        "forward": "order",
        "backward": "autograd",
        "optimizer": "optimizer",
    }
    assert found.other_ns == 2000 * US - 540 * US  # the span ends with the step


@pytest.mark.parametrize("name", ["## forward ##", "forward", "Forward pass", "train_step: forward"])
def test_users_call_their_annotations_like_phases(builder, name):
    builder.annotate(name, 0, 100)
    builder.op("aten::mm", 10, 50)
    builder.op("aten::other", 200, 50)
    found = phases(builder.read())
    assert (host(found), sources(found)) == ({"forward": 100 * US}, {"forward": "annotation"})


@pytest.mark.parametrize("name", ["forwarding", "## all2all_data:lengths ##", "nccl:all_reduce", "metadata"])
def test_other_annotations_are_no_phases(builder, name):
    builder.annotate(name, 0, 100)
    assert phases(builder.read()).phases == []


def test_modules_are_forward_and_recomputation_is_backward(builder):
    builder.python("nn.Module: Net_0", 0, 100)
    builder.op("aten::mm", 10, 50, **{"Sequence number": 1})
    builder.python("torch/autograd/graph.py(9): _engine_run_backward", 200, 300)
    builder.op("CheckpointFunctionBackward", 210, 250, **{"Sequence number": 1, "Fwd thread id": 1})
    builder.python("nn.Module: Net_0", 220, 100)
    found = phases(builder.read())
    assert host(found) == {"forward": 100 * US, "backward": 300 * US}
    assert sources(found)["forward"] == "module"


def test_inference_without_modules_is_all_forward(builder):
    builder.op("aten::mm", 0, 100)
    builder.op("aten::relu", 100, 50)
    assert host(phases(builder.read())) == {"forward": 150 * US}


def test_real_traces_have_the_phases_of_training(real_traces):
    for name in ("a100_ddp_nccl_3steps", "v100_ns_5steps", "v100_ddp_5steps", "legacy_resnet50_workers0"):
        found = phases(read_trace(real_traces / f"{name}.json.gz").ranks[0])
        assert {"forward", "backward", "optimizer", "zero_grad"} <= set(host(found)), name
        longest = max(found.phases, key=lambda phase: phase.device_ns)
        assert longest.name == "backward", name
