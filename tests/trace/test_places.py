"""Places: the user's lines are found, libraries are skipped, backward work leads to its forward operator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pyrometer.trace.analysis.user_lines import user_lines
from pyrometer.trace.naming.frames import frame_kinds
from pyrometer.trace.program.where import place_names, where
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace

US = 1000

USER = [
    "train.py(12): step",
    "pkg/net.py(8): forward",
    "/home/me/torch/train.py(3): main",
    "/home/me/lib/models.py(3): main",
    "/workspace/sglang/python/sglang/srt/layers/linear.py(9): forward",
    "vllm/model_executor/layers/linear.py(9): forward",
    "/tmp/ipykernel_77/123.py(1): <module>",
    "<string>(4): train",
    "<stdin>(1): <module>",
    "test/profile.py(5): run",
    "torch_guard.py(3): wrapper",
    "enumeration.py(3): f",
]
LIBRARIES = [
    "transformers/models/bert/modeling_bert.py(3): forward",
    "numpy/_core/fromnumeric.py(1): mean",
    "torchvision/models/resnet.py(3): forward",
    "/opt/conda/lib/python3.10/site-packages/somelib/core.py(3): f",
    "/usr/lib/python3/dist-packages/somelib.py(3): f",
    "tqdm/_monitor.py(3): run",
]
CORE = [
    "torch/nn/modules/module.py(1782): _call_impl",
    "/opt/conda/lib/python3.10/site-packages/torch/nn/functional.py(3): relu",
    "/opt/pytorch/torch/nn/functional.py(3): relu",
    "<built-in function linear>",
    "<built-in method relu of type object at 0x7f34044cea40>",
    "<frozen abc>(117): __instancecheck__",
    "<string>(2): __init__",
    "<eval_with_key>.3(4): forward",
    "nn.Module: Linear_0",
    "enum.py(1230): __hash__",
    "logging/__init__.py(1720): getEffectiveLevel",
    "/usr/lib/python3.11/contextlib.py(4): inner",
    "triton/runtime/jit.py(3): run",
    "/tmp/torchinductor_root/ab/cabc.py(3): call",
    "typing_extensions.py(3): f",
]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(USER, (True, False)), (LIBRARIES, (False, True)), (CORE, (False, False))],
    ids=["user", "libraries", "core"],
)
def test_functions_are_told_apart(names, expected):
    kinds = frame_kinds(pl.Series(names))
    found = {row["name"]: (row["is_user"], row["is_library"]) for row in kinds.iter_rows(named=True)}
    of_files = [name for name in names if "): " in name]
    assert found == dict.fromkeys(of_files, expected)


def line_of(trace: RankTrace, name: str) -> tuple[str | None, int | None]:
    event = trace.events.filter(pl.col("name") == name)["event"][0]
    place = where(trace, event)
    return place.file, place.line


def test_the_innermost_function_of_the_user_counts(builder):
    builder.python("train.py(1): main", 0, 100)
    builder.python("net.py(5): forward", 10, 80)
    builder.python("transformers/models/bert/modeling_bert.py(3): forward", 20, 60)
    builder.python("torch/nn/functional.py(3): linear", 30, 40)
    builder.op("aten::linear", 40, 20)
    assert line_of(builder.read(), "aten::linear") == ("net.py", 5)


def test_where_all_are_libraries_the_innermost_outside_of_torch_counts(builder):
    builder.python("threading.py(9): run", 0, 100)
    builder.python("tqdm/_monitor.py(3): run", 10, 80)
    builder.python("transformers/models/bert/modeling_bert.py(3): forward", 20, 60)
    builder.python("torch/nn/functional.py(3): linear", 30, 40)
    builder.op("aten::linear", 40, 20)
    trace = builder.read()
    assert line_of(trace, "aten::linear") == ("transformers/models/bert/modeling_bert.py", 3)
    assert line_of(trace, "threading.py(9): run") == (None, None)


def test_libraries_that_only_started_pyrometer_are_no_place(builder):
    builder.python("click/core.py(911): invoke", 0, 100)
    builder.python("pyrometer/cli/trace.py(12): trace", 10, 80)
    builder.python("torch/nn/functional.py(3): linear", 30, 40)
    builder.op("aten::linear", 40, 20)
    assert line_of(builder.read(), "aten::linear") == (None, None)


@pytest.mark.parametrize(
    "starter",
    [
        "run_me.py(3): go",
        "<string>(1): <module>",
        "/tmp/ipykernel_77/123.py(1): <module>",
        "bin/pyro(7): <module>",
    ],
)
def test_who_only_started_the_step_is_no_place_in_it(builder, starter):
    builder.python(starter, 0, 100)
    builder.python("pyrometer/workload/inference.py(129): step", 10, 80)
    builder.op("aten::linear", 20, 10)
    builder.python("net.py(5): forward", 40, 30)
    builder.op("aten::mm", 50, 10)
    trace = builder.read()
    assert line_of(trace, "aten::linear") == (None, None)
    assert line_of(trace, "aten::mm") == ("net.py", 5)


def test_what_the_program_itself_calls_of_ours_leaves_its_lines_to_it(builder):
    builder.python("train.py(3): step", 0, 100)
    builder.python("pyrometer/tuning/shapes/buckets.py(9): pad", 10, 80)
    builder.op("aten::pad", 20, 10)
    assert line_of(builder.read(), "aten::pad") == ("train.py", 3)


def test_nor_is_it_in_the_call_stacks_of_old_files(builder):
    ours = "pyrometer/workload/call.py(20): step"
    builder.op(
        "aten::conv2d", 0, 5, **{"Call stack": f"models/net.py(3): forward;{ours};start.py(46): <module>"}
    )
    builder.op("aten::relu", 10, 5, **{"Call stack": f"{ours};start.py(46): <module>"})
    trace = builder.read()
    assert line_of(trace, "aten::conv2d") == ("models/net.py", 3)
    assert line_of(trace, "aten::relu") == (None, None)


def test_kernels_have_the_place_of_their_launch(builder):
    builder.python("train.py(1): main", 0, 100)
    builder.op("aten::mm", 10, 50)
    builder.launch("gemm", at=20, start=500, dur=10)
    trace = builder.read()
    assert line_of(trace, "gemm") == ("train.py", 1)
    assert place_names(trace).filter(trace.events["name"] == "gemm")["op"].to_list() == ["aten::mm"]


def test_backward_leads_to_the_forward_line_even_below_the_users_own_call(builder):
    builder.python("train.py(1): main", 0, 500)
    builder.python("net.py(5): forward", 10, 80)
    builder.op("aten::mm", 20, 20, **{"Sequence number": 3})
    builder.op("MmBackward0", 200, 50, **{"Sequence number": 3, "Fwd thread id": 1})
    builder.op("aten::t", 210, 5)
    assert line_of(builder.read(), "aten::t") == ("net.py", 5)


def test_the_users_own_backward_is_its_own_place(builder):
    builder.python("train.py(1): main", 0, 500)
    builder.python("net.py(5): forward", 10, 80)
    builder.op("Square", 20, 20, **{"Sequence number": 3})
    builder.op("SquareBackward", 200, 50, **{"Sequence number": 3, "Fwd thread id": 1})
    builder.python("square.py(7): backward", 205, 40)
    builder.op("aten::mul", 210, 5)
    assert line_of(builder.read(), "aten::mul") == ("square.py", 7)


def test_old_files_name_the_call_stack_of_an_operator(builder):
    torch = "/opt/conda/lib/python3.7/site-packages/torch/nn/modules/conv.py(440): forward"
    builder.op(
        "aten::conv2d", 0, 50, **{"Call stack": f"{torch};models/net.py(3): forward;train.py(46): <module>"}
    )
    builder.op("aten::cudnn_convolution", 10, 20)
    trace = builder.read()
    assert line_of(trace, "aten::cudnn_convolution") == ("models/net.py", 3)
    row = user_lines(trace).row(0, named=True)
    assert (row["file"], row["line"], row["self_ns"], row["calls"]) == (
        "models/net.py",
        3,
        50 * US,
        None,
    )


def test_annotations_of_modules_are_preferred_to_the_profilers(builder):
    builder.annotate("module:encoder.layers.0", 0, 100)
    builder.python("nn.Module: Linear_0", 10, 80)
    builder.op("aten::linear", 20, 50)
    trace = builder.read()
    assert place_names(trace).filter(trace.events["name"] == "aten::linear")["module"].to_list() == [
        "encoder.layers.0"
    ]


SCRIPT = """
import sys
import torch
from torch.profiler import ProfilerActivity, profile
from parts.net import Net
from square import square

torch.set_num_threads(1)

def step(net):
    square(net(torch.randn(8, 16))).sum().backward()

def main():
    net = Net()
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as run:
        for _ in range(2):
            step(net)
    run.export_chrome_trace(sys.argv[1])

main()
"""
NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 32)
        self.b = nn.Linear(32, 4)

    def forward(self, x):
        return self.b(self.a(x).relu())
"""
SQUARE = """
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

def square(x):
    return Square.apply(x)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RankTrace:
    """A script, a package beside it and a module elsewhere on the path, as the profiler of this torch names them."""
    folder: Path = tmp_path_factory.mktemp("recorded")
    elsewhere = folder / "elsewhere"
    for path, text in (
        (folder / "train.py", SCRIPT),
        (folder / "parts" / "__init__.py", ""),
        (folder / "parts" / "net.py", NET),
        (elsewhere / "square.py", SQUARE),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "train.py", "trace.json"],
        cwd=folder,
        env={"PYTHONPATH": str(elsewhere), "PATH": "", "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    return read_trace(folder / "trace.json").ranks[0]


@pytest.mark.slow
def test_the_users_functions_are_found_in_a_recorded_trace(recorded):
    rows = {(row["file"], row["function"]): row for row in user_lines(recorded).iter_rows(named=True)}
    assert set(rows) == {
        ("train.py", "<module>"),
        ("train.py", "main"),
        ("train.py", "step"),
        ("parts/net.py", "forward"),
        ("square.py", "square"),
        ("square.py", "forward"),
        ("square.py", "backward"),
    }
    assert rows["train.py", "step"]["calls"] == 2
    assert rows["parts/net.py", "forward"]["backward_ns"] > 0
    assert rows["square.py", "backward"]["forward_ns"] == 0


@pytest.mark.slow
def test_every_operator_of_a_recorded_trace_has_a_line(recorded):
    ops = place_names(recorded).filter(recorded.events["kind"] == "cpu_op")
    assert ops["file"].null_count() == 0


@pytest.mark.slow
def test_self_times_of_lines_sum_to_all_recorded_time(recorded):
    assert (
        user_lines(recorded)["self_ns"].sum()
        == recorded.events["self_ns"]
        .filter(recorded.events["kind"].is_in(["cpu_op", "python_function", "user_annotation"]))
        .sum()
    )


def test_lines_and_their_operators(builder):
    builder.python("train.py(1): main", 0, 100)
    builder.op("aten::a", 10, 30)
    builder.op("aten::b", 50, 10)
    builder.launch("kernel", at=52, start=200, dur=70)
    row = user_lines(builder.read()).row(0, named=True)
    assert (row["self_ns"], row["total_ns"], row["device_ns"]) == (100 * US, 100 * US, 70 * US)
    assert (row["num_ops"], row["num_kernels"], row["calls"]) == (2, 1, 1)
    assert row["top_ops"] == [
        {"name": "aten::b", "host_ns": 10 * US, "device_ns": 70 * US},
        {"name": "aten::a", "host_ns": 30 * US, "device_ns": 0},
    ]


def test_a_function_that_calls_itself_counts_once_in_its_total(builder):
    builder.python("tree.py(1): walk", 0, 100)
    builder.python("tree.py(9): visit", 10, 80)
    builder.python("tree.py(1): walk", 20, 60)
    row = user_lines(builder.read()).filter(pl.col("function") == "walk").row(0, named=True)
    assert (row["calls"], row["self_ns"], row["total_ns"]) == (2, 80 * US, 100 * US)


def test_real_traces_with_stacks_name_a_line_for_nearly_every_operator(real_traces):
    for name in (
        "h100_bert_small",
        "h100_vit",
        "b200_eager_pdl",
        "sglang_decode_graph",
        "legacy_resnet50_workers4",
    ):
        trace = read_trace(real_traces / f"{name}.json.gz").ranks[0]
        ops = place_names(trace).filter(trace.events["kind"] == "cpu_op")
        assert ops["file"].null_count() < 0.1 * ops.height, name
        assert (
            not frame_kinds(pl.Series([f"{file}(1): f" for file in ops["file"].drop_nulls().unique()]))
            .filter(~pl.col("is_user"))
            .height
        ), name
