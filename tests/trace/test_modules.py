"""The tree of modules: forward and backward, self and total."""

from __future__ import annotations

import polars as pl
import pytest

from pyrometer.trace.analysis.modules import modules
from pyrometer.trace.reading.read import read_trace

US = 1000


def row(frame: pl.DataFrame, name: str) -> dict[str, object]:
    return frame.filter(pl.col("module") == name).row(0, named=True)


def nested(builder, prefix: str) -> pl.DataFrame:
    """Two steps: a model that holds a layer; the layer's backward runs on another thread."""
    for number, at in enumerate((0, 1000), start=1):
        mark = builder.annotate if prefix == "module:" else builder.python
        mark(f"{prefix}Net_0", at, 200)
        builder.op("aten::relu", at + 10, 30)
        mark(f"{prefix}Linear_0", at + 50, 100)
        builder.op("aten::addmm", at + 60, 70, **{"Sequence number": number})
        builder.launch("gemm", at=at + 70, start=at + 210, dur=40)
        builder.op("AddmmBackward0", at + 400, 90, tid=200, **{"Sequence number": number, "Fwd thread id": 1})
        builder.launch("gemm", at=at + 410, start=at + 600, dur=60, tid=200)
    return modules(builder.read())


@pytest.mark.parametrize("prefix", ["nn.Module: ", "module:"])
def test_forward_and_backward_of_a_tree(builder, prefix):
    rows = nested(builder, prefix)
    net, linear = row(rows, "Net_0"), row(rows, "Linear_0")
    assert rows["module"].to_list() == ["Net_0", "Linear_0"]
    assert (net["parent"], net["depth"], linear["parent"], linear["depth"]) == (None, 0, "Net_0", 1)
    assert (linear["calls"], linear["mean_ns"]) == (2, 100 * US)
    assert (linear["forward_ns"], linear["backward_ns"]) == (200 * US, 180 * US)
    assert (linear["forward_device_ns"], linear["backward_device_ns"], linear["num_kernels"]) == (
        80 * US,
        120 * US,
        4,
    )
    assert (net["host_self_ns"], net["host_total_ns"]) == (200 * US, 580 * US)
    assert (net["device_self_ns"], net["device_total_ns"]) == (0, 200 * US)


def test_a_module_within_itself_counts_once(builder):
    builder.python("nn.Module: Tree_0", 0, 100)
    builder.python("nn.Module: Tree_0", 20, 50)
    found = row(modules(builder.read()), "Tree_0")
    assert (found["calls"], found["host_self_ns"], found["host_total_ns"]) == (2, 100 * US, 100 * US)


def test_recomputed_calls_are_counted_and_their_time_is_backward(builder):
    builder.python("nn.Module: Block_0", 0, 100)
    builder.op("CheckpointFunction", 10, 80, **{"Sequence number": 1})
    builder.op("CheckpointFunctionBackward", 200, 100, **{"Sequence number": 1, "Fwd thread id": 1})
    builder.python("nn.Module: Block_0", 210, 60)
    found = row(modules(builder.read()), "Block_0")
    assert (found["calls"], found["num_recomputed"]) == (2, 1)
    assert (found["forward_ns"], found["backward_ns"]) == (100 * US, 100 * US)


def test_the_module_that_calls_most_often_is_the_parent(builder):
    for at, outer in ((0, "A_0"), (100, "B_0"), (200, "B_0")):
        builder.python(f"nn.Module: {outer}", at, 50)
        builder.python("nn.Module: Shared_0", at + 10, 20)
    assert row(modules(builder.read()), "Shared_0")["parent"] == "B_0"


def test_a_trace_without_modules_has_none(builder):
    builder.op("aten::mm", 0, 10)
    assert modules(builder.read()).is_empty()


def test_real_traces_nest_their_modules(real_traces):
    trace = read_trace(real_traces / "h100_vit.json.gz").ranks[0]
    rows = modules(trace)
    roots = rows.filter(pl.col("depth") == 0)
    launched = trace.events.filter(
        pl.col("kind").is_in(["kernel", "gpu_memcpy", "memset"]) & pl.col("op").is_not_null()
    )
    assert roots["module"].to_list() == ["ViTModel_0"]
    assert roots["device_total_ns"].sum() == rows["device_self_ns"].sum() <= launched["dur_ns"].sum()
    assert roots["num_kernels"][0] == rows["num_kernels"].max()
