"""PYR502: chains of elementwise operators."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.rules.case import Case
from pyrometer.workload.inference import Inference
from pyrometer.workload.program.record import Program

CODE = "PYR502"


class WrittenOut(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x.abs()
        return 0.5 * kept * (1 + torch.tanh(0.79788456 * (kept + 0.044715 * kept**3)))


LINE = WrittenOut.forward.__code__.co_firstlineno + 2
"""Of the return above."""


@pytest.fixture(scope="module")
def seen(observe: Any) -> Case:
    work = Inference(WrittenOut(), torch.randn(1024, 1024))
    return observe(work, "trace", "program", sources=[Path(__file__)])


def test_the_chain_of_a_real_program_is_told_with_its_line(seen: Case, only: Any) -> None:
    finding = only(CODE, seen)
    assert (finding.where.line, finding.where.function) == (LINE, "forward")
    assert finding.cost.share > 0.5
    assert finding.evidence["operators_per_step"] >= 7
    assert finding.advice.gain.ratio_low < 0.6
    assert finding.advice.gain.ratio_high == 1
    assert finding.advice.rewrite.splitlines()[0] == "@torch.compile"
    assert finding.advice.lever == "compile"


def test_small_tensors_stay_in_a_cache(observe: Any, findings: Any) -> None:
    evidence = observe(Inference(WrittenOut(), torch.randn(64, 64)), "trace", "program")
    assert findings(CODE, evidence) == []


def test_one_operator_that_does_it_all_is_fine(observe: Any, findings: Any) -> None:
    evidence = observe(
        Inference(nn.Sequential(nn.GELU(), nn.ReLU()), torch.randn(1024, 1024)), "trace", "program"
    )
    assert findings(CODE, evidence) == []


def test_a_compiled_program_is_left_alone(seen: Case, findings: Any) -> None:
    program = Program(kind="inference", device="cpu", compiled=True, grad_mode="inference_mode")
    assert findings(CODE, Case(target="test", trace=seen.trace, program=program)) == []


def test_a_chain_that_takes_little_of_the_step_is_left_alone(
    builder: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    builder.op("aten::mm", 0, 100_000, **shapes([1024, 1024], [1024, 1024]))
    for i, name in enumerate(("add", "mul", "tanh", "sub")):
        builder.op(f"aten::{name}", 100_000 + i * 500, 400, **shapes([1024, 1024], [1024, 1024]))
    assert findings(CODE, traced(builder)) == []


def test_without_source_the_function_or_operator_is_named(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    for i, name in enumerate(("add", "mul", "tanh", "sub")):
        builder.op(f"aten::{name}", i * 500, 400, **shapes([1024, 1024], [1024, 1024]))
    finding = only(CODE, traced(builder))
    assert finding.where.op == "aten::add"
    assert finding.evidence["operators"] == ["aten::add", "aten::mul", "aten::sub", "aten::tanh"]


def test_the_tanh_form_of_gelu_is_recognised(seen: Case, only: Any) -> None:
    assert 'gelu(x, approximate="tanh")' in only(CODE, seen).advice.text


def chained(builder: Any, shapes: Any, file: str) -> Any:
    builder.python(f"{file}(3): forward", 0, 2_500)
    for i, name in enumerate(("add", "mul", "sub", "exp")):
        builder.op(f"aten::{name}", i * 500 + 1, 400, **shapes([1024, 1024], [1024, 1024]))
    return builder


PLAIN = "import torch\n\ndef forward(x):\n    return x.exp().tanh().neg()\n"
LAYER = "import torch\nclass Norm(torch.nn.Module):\n    def forward(self, x):\n        return x.exp().tanh().neg()\n"


@pytest.mark.parametrize(
    ("source", "op", "severity"),
    [
        (PLAIN, "aten::sigmoid_backward", "warning"),
        (PLAIN, "aten::_softmax", "info"),
        (LAYER, "aten::sigmoid_backward", "info"),
    ],
    ids=["a function", "an operator of layers", "a module"],
)
def test_what_may_be_layers_of_a_network_is_a_remark(  # noqa: PLR0917
    builder: Any, shapes: Any, traced: Any, only: Any, source: str, op: str, severity: str
) -> None:
    for step in range(4):
        start = step * 2_500
        builder.annotate(f"ProfilerStep#{step}", start, 2_450)
        builder.python("train.py(3): forward", start + 1, 2_400)
        for i, name in enumerate(("aten::mul", op, "aten::sub", "aten::neg")):
            builder.op(name, start + i * 500 + 2, 400, **shapes([1024, 1024], [1024, 1024]))
    finding = only(CODE, traced(builder, source=source))
    assert op in finding.evidence["operators"]
    assert finding.severity == severity


def test_nothing_is_to_be_written_into_a_file_of_a_library(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(chained(builder, shapes, "somelib/activations.py"), source="import torch\n"))
    assert finding.where.file == "somelib/activations.py"
    assert finding.advice.sketch == "model = torch.compile(model)"
    assert "the model that calls it" in finding.advice.text
    assert "gelu" not in finding.advice.text


def test_in_a_file_of_the_program_the_function_is_compiled(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    source = "import torch\n\ndef forward(x):\n    return x.exp().tanh().neg()\n"
    finding = only(CODE, traced(chained(builder, shapes, "train.py"), source=source))
    assert finding.advice.rewrite == "@torch.compile\ndef forward(x):"


SIZE = [1024, 1024]
BYTES = 4 * 1024 * 1024


def repeated(
    builder: Any,
    arguments: dict[str, Any],
    *,
    times: int = 4,
    kernel_us: float = 100,
    names: Any = ("exp", "tanh", "neg"),
) -> Any:
    """A matrix product and a chain, again and again on a device, called from one function."""
    at = 0.0
    for i in range(times):
        builder.annotate(f"ProfilerStep#{i}", at, 1_000)
        builder.python("train.py(3): forward", at, 900)
        builder.op("aten::mm", at, 20)
        builder.launch("ampere_sgemm_64x64", at + 2, at + 30, 200)
        builder.call("cudaStreamSynchronize", at + 40, 300)
        for k, name in enumerate(names):
            start = at + 400 + k * (kernel_us + 2)
            builder.op(f"aten::{name}", start, 5, **arguments)
            builder.launch(
                f"vectorized_elementwise_kernel<{name}>", start + 1, start + 6, kernel_us, call_us=2
            )
        at += 1_000
    return builder


def test_a_chain_that_repeats_is_told_by_what_it_moves(
    builder: Any, shapes: Any, traced: Any, only: Any
) -> None:
    finding = only(CODE, traced(repeated(builder, shapes(SIZE))))
    assert finding.message.startswith("exp → tanh → neg takes")
    assert finding.evidence["chains"] == ["exp → tanh → neg, 4 times in forward (train.py:3)"]
    assert finding.evidence["operators_per_step"] == 3
    assert finding.evidence["intermediate_bytes_per_step"] == 2 * BYTES
    assert finding.links == ["/trace/sequences/0"]
    # Three parts read and write once each; fused, two results are neither written nor read again.
    share = finding.cost.share
    assert finding.advice.gain.ratio_low == pytest.approx(1 - share * 4 / 6)
    assert finding.advice.gain.ratio_high == pytest.approx(1 - share * 2 / 6)
    assert finding.advice.gain.method.startswith("roofline")


def test_without_shapes_on_a_device_the_gain_is_only_bounded(builder: Any, traced: Any, only: Any) -> None:
    finding = only(CODE, traced(repeated(builder, {})))
    assert finding.evidence["intermediate_bytes_per_step"] is None
    assert finding.advice.gain.ratio_low == pytest.approx(1 - finding.cost.share * 2 / 3)
    assert finding.advice.gain.ratio_high == 1
    assert finding.advice.gain.method.startswith("bound")


def test_parts_of_different_shapes_are_one_chain(builder: Any, shapes: Any, traced: Any, only: Any) -> None:
    at = 0.0
    for i in range(4):
        builder.annotate(f"ProfilerStep#{i}", at, 1_000)
        for k, (name, given) in enumerate([("exp", [SIZE]), ("sum", [SIZE]), ("mul", [SIZE, [1024, 1]])]):
            start = at + k * 102
            builder.op(f"aten::{name}", start, 5, **shapes(*given))
            kernel = "reduce_kernel<sum>" if name == "sum" else f"elementwise_kernel<{name}>"
            builder.launch(kernel, start + 1, start + 6, 100, call_us=2)
        at += 1_000
    evidence = traced(builder, limits={"PYR502.min_bytes": 1000})
    assert only(CODE, evidence).message.startswith("exp → sum → mul")


@pytest.mark.parametrize(
    "case",
    [
        ([64, 64], {}),  # small results stay in a cache
        (SIZE, {"kernel_us": 5}),  # short kernels cost their launches
        (SIZE, {"names": ("neg", "neg", "neg", "neg")}),  # the same on different data hands nothing on
        (SIZE, {"kernel_us": 14}),  # takes little of the step
        (SIZE, {"names": ("exp",)}),  # nothing follows it
    ],
)
def test_what_fusing_would_not_help_is_left_alone(
    builder: Any, shapes: Any, traced: Any, findings: Any, case: tuple[list[int], dict[str, Any]]
) -> None:
    dims, work = case
    assert findings(CODE, traced(repeated(builder, shapes(dims), **work))) == []


def test_large_operators_that_do_not_follow_each_other_are_no_chain(
    builder: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    at = 0.0
    for i in range(4):
        builder.annotate(f"ProfilerStep#{i}", at, 1_000)
        for k, name in enumerate(("exp", "tanh", "neg")):
            start = at + k * 300
            builder.op(f"aten::{name}", start, 5, **shapes(SIZE))
            builder.launch(f"elementwise_kernel<{name}>", start + 1, start + 6, 200, call_us=2)
        at += 1_000
    assert findings(CODE, traced(builder)) == []


def test_the_optimizers_chain_has_a_fused_form_of_its_own(
    builder: Any, shapes: Any, traced: Any, findings: Any
) -> None:
    for i in range(4):
        builder.annotate("phase:optimizer", 1_000 * i + 390, 400)
    assert findings(CODE, traced(repeated(builder, shapes(SIZE)))) == []


def test_a_real_program_of_several_steps_is_told_by_its_chains(observe: Any, only: Any) -> None:
    work = Inference(WrittenOut(), torch.randn(1024, 1024))
    finding = only(CODE, observe(work, "trace", "program", sources=[Path(__file__)], steps=4))
    assert (finding.where.line, finding.where.function) == (LINE, "forward")
    assert finding.evidence["intermediate_bytes_per_step"] > BYTES
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 1
    assert 'gelu(x, approximate="tanh")' in finding.advice.text


def test_the_operator_that_does_it_at_once_gives_the_same_in_fewer_operators() -> None:
    x = torch.randn(256, 256).abs()
    written, fused = WrittenOut()(x), functional.gelu(x, approximate="tanh")
    torch.testing.assert_close(fused, written)
    with torch.profiler.profile() as many:
        WrittenOut()(x)
    with torch.profiler.profile() as profile:
        functional.gelu(x, approximate="tanh")
    assert len([e for e in many.events() if e.name.startswith("aten::")]) >= 7
    assert len([e for e in profile.events() if e.name.startswith("aten::")]) == 1


@pytest.mark.slow
def test_the_rewritten_function_computes_the_same(
    builder: Any, shapes: Any, traced: Any, only: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import torch\n\ndef forward(x):\n    return x.exp().tanh().neg()\n"
    advice = only(CODE, traced(chained(builder, shapes, "train.py"), source=source)).advice
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    names: dict[str, Any] = {}
    exec(source.replace(advice.replaces, advice.rewrite), names)
    x = torch.randn(8)
    torch.testing.assert_close(names["forward"](x), x.exp().tanh().neg())
