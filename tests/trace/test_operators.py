"""Operator tables: definitions on traces with a known truth, and agreement with the profiler's own averages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pyrometer.errors import InputError
from pyrometer.trace.analysis.operators import operators
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace

US = 1000


def rows(frame: pl.DataFrame, *keys: str) -> dict[Any, dict[str, Any]]:
    """Rows by their key columns; one key stands for itself."""
    found = {}
    for row in frame.iter_rows(named=True):
        key = tuple(row[name] for name in keys)
        found[key if len(keys) > 1 else key[0]] = row
    return found


def test_self_is_what_nested_operators_leave(builder):
    builder.op("aten::linear", 0, 100)
    builder.op("aten::addmm", 10, 60)
    builder.op("aten::addmm", 200, 40)
    found = rows(operators(builder.read()), "name")
    linear, addmm = found["aten::linear"], found["aten::addmm"]
    assert (linear["calls"], linear["host_self_ns"], linear["host_total_ns"]) == (1, 40 * US, 100 * US)
    assert (addmm["calls"], addmm["host_self_ns"], addmm["host_total_ns"]) == (2, 100 * US, 100 * US)
    assert (addmm["min_ns"], addmm["mean_ns"], addmm["max_ns"]) == (40 * US, 50 * US, 60 * US)
    assert linear["host_share"] == pytest.approx(40 / 240)


def test_device_work_counts_where_it_was_launched_and_above(builder):
    builder.op("aten::linear", 0, 100)
    builder.op("aten::addmm", 10, 60)
    builder.launch("gemm", at=20, start=50, dur=300)
    builder.launch("Memset (Device)", at=30, start=40, dur=7, cat="gpu_memset")
    builder.launch("bias", at=80, start=350, dur=5)
    found = rows(operators(builder.read()), "name")
    linear, addmm = found["aten::linear"], found["aten::addmm"]
    assert (linear["device_self_ns"], linear["device_total_ns"], linear["num_kernels"]) == (
        5 * US,
        312 * US,
        2,
    )
    assert (addmm["device_self_ns"], addmm["device_total_ns"], addmm["num_kernels"]) == (
        307 * US,
        307 * US,
        1,
    )
    assert (addmm["host_self_ns"], addmm["runtime_ns"]) == (60 * US, 10 * US)


def test_an_operator_within_itself_counts_once_in_totals(builder):
    builder.op("aten::sum", 0, 100)
    builder.op("aten::to", 10, 80)
    builder.op("aten::sum", 20, 50)
    builder.launch("reduce", at=30, start=200, dur=40)
    found = rows(operators(builder.read()), "name")
    total = found["aten::sum"]
    assert (total["calls"], total["host_self_ns"], total["host_total_ns"]) == (2, 70 * US, 100 * US)
    assert (total["device_self_ns"], total["device_total_ns"], total["num_kernels"]) == (40 * US, 40 * US, 1)


def test_overlapping_operators_part_the_time_once(builder):
    builder.op("aten::a", 0, 100)
    builder.op("aten::b", 50, 100)
    table = operators(builder.read())
    assert table["host_self_ns"].sum() == 150 * US


def test_shapes_and_types_part_rows(builder):
    for ts, dims in ((0, [[8, 4]]), (10, [[8, 4]]), (20, [[2, 4]])):
        builder.op("aten::relu", ts, 5, **{"Input Dims": dims, "Input type": ["float"]})
    table = operators(builder.read(), by="shape")
    assert sorted(table.select("input_dims", "calls").rows()) == [("[[2,4]]", 1), ("[[8,4]]", 2)]
    assert table["input_types"].to_list() == ['["float"]', '["float"]']


def forward_and_backward(builder) -> RankTrace:
    """A forward operator within a module and a line of the user, its backward one on autograd's thread."""
    builder.python("train.py(9): step", 0, 400)
    builder.python("nn.Module: Linear_0", 10, 100)
    builder.python("net.py(30): forward", 20, 80)
    builder.op("aten::addmm", 30, 50, **{"Sequence number": 7})
    builder.python("torch/_tensor.py(566): backward", 150, 200)
    name = "autograd::engine::evaluate_function: AddmmBackward0"
    autograd = {"tid": 200, "Sequence number": 7, "Fwd thread id": 1}
    builder.op(name, 160, 90, **autograd)
    builder.op("AddmmBackward0", 170, 70, **autograd)
    builder.op("aten::mm", 180, 40, tid=200)
    builder.launch("gemm", at=190, start=300, dur=20, tid=200)
    builder.op("aten::add_", 370, 20)
    return builder.read()


@pytest.mark.parametrize(
    ("by", "key", "place"),
    [("module", ("module",), "Linear_0"), ("line", ("file", "line"), ("net.py", 30))],
)
def test_backward_belongs_to_the_place_of_its_forward(builder, by, key, place):
    found = rows(operators(forward_and_backward(builder), by=by), *key)[place]
    assert (found["forward_ns"], found["backward_ns"]) == (50 * US, 90 * US)
    assert (found["forward_device_ns"], found["backward_device_ns"]) == (0, 20 * US)
    assert found["calls"] == 4
    assert (
        found["host_total_ns"] == 140 * US
    )  # the outermost operators of the row: addmm and the node of autograd


def test_what_no_place_is_known_for_has_a_row_too(builder):
    found = rows(operators(forward_and_backward(builder), by="module"), "module")
    assert found[None]["host_self_ns"] == 20 * US


def test_stacks_are_python_functions_from_the_innermost_on(builder):
    found = rows(operators(forward_and_backward(builder), by="stack"), "stack")
    assert found["net.py(30): forward;train.py(9): step"]["calls"] == 4
    assert found["train.py(9): step"]["host_self_ns"] == 20 * US


def test_phases_part_rows(builder):
    builder.annotate("phase:forward", 0, 50)
    builder.op("aten::mm", 10, 20)
    builder.annotate("phase:backward", 60, 100)
    builder.op("aten::mm", 70, 30, tid=200, **{"Sequence number": 1, "Fwd thread id": 1})
    found = rows(operators(builder.read(), by="phase"), "phase")
    assert {name: row["host_self_ns"] for name, row in found.items()} == {
        "forward": 20 * US,
        "backward": 30 * US,
    }


def test_marks_of_steps_in_old_files_are_no_operators(builder):
    builder.add("Operator", "ProfilerStep#3", 0, 100)
    builder.add("Operator", "aten::mm", 10, 20)
    assert operators(builder.read())["name"].to_list() == ["aten::mm"]


def test_another_grouping_is_refused(builder):
    with pytest.raises(InputError, match="op, shape, module"):
        operators(builder.read(), by="kernel")


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[RankTrace, Any]:
    """Three training steps on the CPU, as a trace and as the profiler's averages."""
    import torch
    from torch import nn
    from torch.profiler import ProfilerActivity, profile

    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as run:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(8, 16)).pow(2).mean().backward()
            optimizer.step()
    path: Path = tmp_path_factory.mktemp("profiled") / "trace.json"
    run.export_chrome_trace(str(path))
    return read_trace(path).ranks[0], run


def test_self_time_and_calls_agree_with_the_profiler(profiled):
    trace, run = profiled
    found = rows(operators(trace), "name")
    within_itself = {
        name
        for name, parent in trace.events.filter(pl.col("kind") == "cpu_op")
        .select("name", "parent")
        .iter_rows()
        if parent is not None and trace.events["name"][parent] == name
    }
    averages = [average for average in run.key_averages() if average.key in found]
    assert {average.key for average in averages} == set(found)
    assert len(found) > 20
    for average in averages:
        mine = found[average.key]
        # The profiler takes an operator and its only child of the same name for one call.
        assert (
            mine["calls"] >= average.count if average.key in within_itself else mine["calls"] == average.count
        )
        assert mine["host_self_ns"] == pytest.approx(average.self_cpu_time_total * US, abs=2)
        if average.key not in within_itself:
            assert mine["host_total_ns"] == pytest.approx(average.cpu_time_total * US, abs=2)


def test_shapes_agree_with_the_profiler(profiled):
    trace, run = profiled
    averages = run.key_averages(group_by_input_shape=True)
    theirs = Counter(
        average.key for average in averages if average.key in ("aten::addmm", "aten::mm", "aten::relu")
    )
    mine = Counter(operators(trace, by="shape")["name"].to_list())
    assert theirs
    assert {name: mine[name] for name in theirs} == theirs
