"""Comparisons of different programs are refused, also without shapes; another way of running one program is not another program."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from pyrometer.errors import IncomparableError
from pyrometer.trace.difference.compare import diff_traces
from pyrometer.trace.reading.read import read_trace

CONV = ("aten::conv2d", "aten::batch_norm", "aten::relu", "aten::max_pool2d", "aten::conv2d", "aten::linear")
LINEAR = ("aten::linear", "aten::relu", "aten::linear", "aten::relu", "aten::linear")
TEXT = ("aten::embedding", "aten::layer_norm", "aten::linear", "aten::scaled_dot_product_attention", "aten::gelu")  # fmt: skip
PATCHES = ("aten::conv2d", "aten::cat", *TEXT[1:])


@pytest.fixture
def ran(new_builder, tmp_path):
    """A trace of four steps: `ran(ops, module="Net", kernels=…)`; nothing but names and times is recorded."""
    numbers = itertools.count()

    def write(ops=(), *, module=None, kernels=(), outer=None, backward=()):
        builder = new_builder(tmp_path)
        for i in range(4):
            at = i * 1000.0
            builder.annotate(f"ProfilerStep#{i}", at, 990)
            if module:
                builder.python(f"nn.Module: {module}_0", at + 5, 900)
            if outer:
                builder.op(outer, at + 6, 890)
            for k, op in enumerate(ops):
                builder.op(op, at + 10 + 20 * k, 15)
            for k, op in enumerate(backward):
                builder.op(f"autograd::engine::evaluate_function: {op}", at + 500 + 20 * k, 15)
            for k, kernel in enumerate(kernels):
                builder.launch(kernel, at + 600 + 20 * k, at + 610 + 20 * k, 5)
        return builder.read(f"{next(numbers)}.json")

    return write


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations([CONV, LINEAR, TEXT, PATCHES], 2)))
def test_different_programs_are_refused_without_shapes_and_modules(ran, a, b):
    with pytest.raises(IncomparableError, match=r"in the first only.*--diff-anyway"):
        diff_traces(ran(a), ran(b))


def test_they_are_described_when_asked_for_and_get_no_verdict(ran):
    diff = diff_traces(ran(CONV), ran(LINEAR), anyway=True)
    assert diff.outcome == "undecided"
    assert "different programs: convolution" in diff.sentence
    assert diff.differences[0].field == "program"


def test_replayed_graphs_are_told_apart_by_their_kernels(ran):
    conv = ran(kernels=("sm80_xmma_fprop_implicit_gemm_f32", "bn_fw_inf_kernel", "max_pool_forward_nchw"))
    linear = ran(kernels=("ampere_sgemm_128x64_tn", "vectorized_elementwise_kernel"))
    with pytest.raises(IncomparableError, match="convolution, normalisation, pooling in the first only"):
        diff_traces(conv, linear)


@pytest.mark.parametrize(
    "other",
    [
        ("aten::embedding", "aten::layer_norm", "aten::linear", "aten::matmul", "aten::softmax", "aten::matmul", "aten::gelu"),
        ("aten::embedding", "aten::native_layer_norm", "aten::addmm", "aten::_flash_attention_forward", "aten::gelu"),
        (*TEXT, "aten::add", "aten::mul", "aten::clone"),
    ],
    ids=["attention written out", "other operators below", "more around it"],
)  # fmt: skip
def test_another_way_of_writing_is_the_same_program(ran, other):
    assert diff_traces(ran(TEXT), ran(other)).outcome in {"same", "undecided"}


def test_training_and_inference_are_of_one_program(ran):
    backward = ("ConvolutionBackward0", "NativeBatchNormBackward0", "ReluBackward0", "AddmmBackward0")
    assert diff_traces(ran(CONV), ran((*CONV, "aten::cross_entropy_loss"), backward=backward))


def test_modules_tell_programs_of_the_same_operators_apart(ran):
    other = (
        *TEXT,
        "aten::eq",
        "aten::masked_fill",
        "aten::tanh",
        "aten::select",
        "aten::index",
        "aten::cumsum",
    )
    assert diff_traces(ran(TEXT), ran(other))
    assert diff_traces(ran(TEXT, module="Coder"), ran(other, module="Coder"))
    with pytest.raises(IncomparableError, match="modules Coder against Reader"):
        diff_traces(ran(TEXT, module="Coder"), ran(other, module="Reader"))


def test_a_compiled_side_is_known_by_what_compilers_leave_to_libraries(ran):
    compiled = ran(
        ("aten::convolution", "aten::convolution", "aten::addmm"), outer="## Call CompiledFxGraph fabc ##"
    )
    assert diff_traces(ran(CONV), compiled).differences[0].field == "compilation"
    for other in (LINEAR, TEXT):
        with pytest.raises(IncomparableError, match="different programs"):
            diff_traces(ran(other), compiled)


def test_two_compiled_sides_may_have_fused_other_parts(ran):
    graph = "## Call CompiledFxGraph fabc ##"
    fused = ran(("aten::mm", "aten::_flash_attention_forward", "aten::mm"), outer=graph)
    assert diff_traces(fused, ran(("aten::mm", "aten::bmm", "aten::mm"), outer=graph))
    with pytest.raises(IncomparableError, match="convolution"):
        diff_traces(fused, ran(("aten::convolution", "aten::mm"), outer=graph))


def test_more_layers_are_other_work(ran):
    diff = diff_traces(ran(CONV), ran(CONV + CONV[:2]))
    assert diff.outcome == "undecided"
    assert "calls convolution another number of times" in diff.sentence
    assert "2 per step against 3 per step" in diff.sentence


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 7 * 7, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def profiled(
    path, model, *, batch=4, fused=False, autocast=False, layout=torch.contiguous_format, stack=False
):
    """A few steps of training, recorded without shapes."""
    model = model.to(memory_format=layout)
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    activities = [torch.profiler.ProfilerActivity.CPU]
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule, with_stack=stack) as profiler:
        for _ in range(4):
            x = torch.randn(batch, 3, 16, 16).contiguous(memory_format=layout)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(x).float().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return read_trace(path).rank()


@pytest.mark.parametrize("stack", [False, True])
def test_options_of_one_program_leave_it_comparable(tmp_path, stack):
    base = profiled(tmp_path / "base.json", Convolutions(), stack=stack)
    ways = {
        "batch": {"batch": 8},
        "fused": {"fused": True},
        "autocast": {"autocast": True},
        "layout": {"layout": torch.channels_last},
    }
    for name, way in ways.items():
        fields = {
            difference.field
            for difference in diff_traces(
                base, profiled(tmp_path / f"{name}.json", Convolutions(), stack=stack, **way)
            ).differences
        }
        assert not fields & {"program", "work"}, name
    linear = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 10))
    with pytest.raises(IncomparableError, match="convolution"):
        diff_traces(base, profiled(tmp_path / "linear.json", linear, stack=stack))
