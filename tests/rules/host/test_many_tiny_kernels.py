"""PYR111: steps of very many tiny pieces of work."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.trace.naming.optimizers import FUSED
from pyrometer.workload.program.record import OptimizerFact, Program

CODE = "PYR111"


def filled(builder: Any, *, kernels: int, kernel_us: float, every_us: float, op: str = "aten::mul_") -> Any:
    """Two steps of many kernels, called from one function."""
    length = kernels * every_us
    for i in range(2):
        builder.annotate(f"ProfilerStep#{i}", i * length, length)
        builder.python("net.py(7): forward", i * length, length - 1)
        for k in range(kernels):
            at = i * length + k * every_us + 1
            builder.op(op, at, every_us - 3)
            builder.launch("elementwise_kernel<mul>", at + 2, at + 6, kernel_us, call_us=3)
    return builder


def test_hundreds_of_tiny_kernels_are_told_with_their_place(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    finding = only(CODE, evidence_of(filled(builder, kernels=400, kernel_us=3, every_us=12)))
    assert (finding.where.file, finding.where.line) == ("net.py", 7)
    assert finding.evidence["short_per_step"] == 400
    assert finding.evidence["short_share"] == 1
    assert finding.evidence["sites"] == ["aten::mul_ 800× in forward (net.py:7)"]
    assert finding.evidence["candidates"] == ["mul_ 8×, 100 times in forward (net.py:7)"]
    assert "one operator on different data" in finding.advice.text
    assert finding.cost.share > 0.5
    assert finding.advice.lever == "compile"


def test_sequences_that_come_again_and_again_are_the_candidates(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for i in range(2):
        builder.annotate(f"ProfilerStep#{i}", i * 5_000, 5_000)
        builder.python("net.py(7): forward", i * 5_000, 4_999)
        for k in range(400):
            at = i * 5_000 + k * 12 + 1
            name = ("aten::add", "aten::mul", "aten::tanh", "aten::mm")[k % 4]
            kernel = "sgemm_32x32" if name == "aten::mm" else f"elementwise_kernel<{name[6:]}>"
            builder.op(name, at, 9)
            builder.launch(kernel, at + 2, at + 6, 3, call_us=3)
    finding = only(CODE, evidence_of(builder))
    first = finding.evidence["candidates"][0]
    assert re.fullmatch(r"mm → add → mul → tanh, 19\d times in forward \(net.py:7\)", first)
    assert re.search(
        r"mm → add → mul → tanh comes 19\d times and can be one kernel each", finding.advice.text
    )
    assert "/trace/sequences/0" in finding.links


@pytest.mark.parametrize(
    "work",
    [
        {"kernels": 50, "kernel_us": 3, "every_us": 12},  # few of them
        {"kernels": 400, "kernel_us": 20, "every_us": 21},  # none is tiny
    ],
)
def test_few_or_long_kernels_are_not(
    builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]], work: dict[str, Any]
) -> None:
    assert findings(CODE, evidence_of(filled(builder, **work))) == []


def test_kernels_that_a_graph_launches_cost_their_own_time_only(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for i in range(2):
        builder.annotate(f"ProfilerStep#{i}", i * 2000, 2000)
        correlation = builder.call("cudaGraphLaunch", i * 2000, 6)
        for k in range(400):
            builder.device("kernel", "mul_kernel", i * 2000 + 8 + k * 4.5, 4, correlation=correlation)
    finding = only(CODE, evidence_of(builder))
    assert finding.cost.share == pytest.approx(2 * 400 * 4 / (2 * 2000), rel=0.01)  # of both steps, whole


def test_a_program_of_tiny_operators_on_a_cpu_is_found(
    traced: Callable[[str, str], Case], only: Callable[..., Finding]
) -> None:
    finding = only(CODE, traced("tiny_ops", "workload"))
    assert finding.where.function == "forward"
    assert finding.evidence["short_per_step"] > 1000
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 1


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("tiny_ops", "fixed"),
        ("memory_churn", "workload"),
        ("memory_churn", "fixed"),
        ("item_each_step", "workload"),
        ("slow_loader", "fixed"),  # tiny operators there are, in the loader
        ("inefficient_op", "workload"),
    ],
)
def test_programs_with_other_faults_are_left_alone(
    traced: Any, findings: Callable[..., list[Finding]], name: str, variant: str
) -> None:
    assert findings(CODE, traced(name, variant)) == []


@pytest.mark.parametrize(("around", "codes"), [("aten::gru", []), ("aten::linear", [CODE])])
def test_what_a_recurrent_layer_issues_by_itself_is_nobodys_to_batch(
    builder: Any, evidence_of: Any, findings: Any, around: str, codes: list[str]
) -> None:
    for i in range(2):
        start = i * 40_000
        builder.annotate(f"ProfilerStep#{i}", start, 40_000)
        builder.python("net.py(7): forward", start, 39_999)
        builder.op(around, start + 10, 39_000)
        for k in range(3_500):
            builder.op("aten::mul", start + 20 + 10 * k, 5)
    assert [one.code for one in findings(CODE, evidence_of(builder))] == codes


def updating(builder: Any) -> Any:
    """Two steps on a CPU of thousands of tiny operators within an optimizer's update."""
    for i in range(2):
        start = i * 40_000
        builder.annotate(f"ProfilerStep#{i}", start, 40_000)
        builder.annotate("phase:optimizer", start + 10, 39_000)
        for k in range(3_500):
            builder.op("aten::mul_", start + 20 + k * 11, 8)
    return builder


@pytest.fixture
def updated_by(builder: Any, evidence_of: Any) -> Callable[..., Case]:
    """Case of such steps with an optimizer of a type."""

    def look(type_name: str, fused: bool | None = None) -> Case:
        fact = OptimizerFact(
            type_name=type_name, fused=fused, num_groups=1, num_tensors=60, num_parameters=600, state_bytes=0
        )
        program = Program(kind="training", device="cpu", compiled=False, grad_mode="grad", optimizer=fact)
        return evidence_of(updating(builder), program=program)

    return look


def test_updates_tensor_by_tensor_are_told_to_fuse(
    updated_by: Callable[..., Case], only: Callable[..., Finding]
) -> None:
    finding = only(CODE, updated_by("AdamW"))
    assert (finding.advice.lever, finding.resource) == ("fused_optimizer", "optimizer")
    assert "fused=True" in finding.advice.text


@pytest.mark.parametrize(("type_name", "fused"), [("Adafactor", None), ("LBFGS", None), ("AdamW", True)])
def test_an_optimizer_without_a_fused_update_is_not_told_to_use_it(
    updated_by: Callable[..., Case], findings: Callable[..., list[Finding]], type_name: str, fused: Any
) -> None:
    assert findings(CODE, updated_by(type_name, fused)) == []


@pytest.mark.parametrize("name", sorted(FUSED))
def test_the_optimizers_that_are_told_to_fuse_accept_it(name: str) -> None:
    weight = torch.randn(3, requires_grad=True)
    weight.grad = torch.ones(3)
    getattr(torch.optim, name)([weight], lr=0.1, fused=True).step()


def test_one_fused_update_replaces_many_small_ones(ops_of: Any) -> None:
    def trained(**options: Any) -> tuple[list[torch.Tensor], int]:
        torch.manual_seed(0)
        weights = [torch.randn(4, 4, requires_grad=True) for _ in range(20)]
        optimizer = torch.optim.Adam(weights, lr=0.01, **options)
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        _, counts = ops_of(optimizer.step)
        return weights, counts.total()

    plain, many = trained(foreach=False)
    fused, few = trained(fused=True)
    torch.testing.assert_close(fused, plain)
    assert few * 3 < many


@pytest.mark.parametrize(("optimizer", "lever"), [("SGD", "fused_optimizer"), ("Shampoo", None)])
def test_in_a_file_kernels_of_the_optimizers_own_mark_are_updates(
    builder: Any, evidence_of: Any, findings: Any, optimizer: str, lever: str | None
) -> None:
    for step in range(2):
        start = step * 20_000
        builder.annotate(f"ProfilerStep#{step}", start, 20_000)
        builder.annotate(f"Optimizer.step#{optimizer}.step", start + 10, 16_000)
        for k in range(400):
            at = start + 20 + 35 * k
            builder.op("aten::add_", at, 30)
            builder.launch("add", at + 5, at + 12, 3)
    told = findings(CODE, evidence_of(builder))
    assert [finding.advice.lever for finding in told] == ([lever] if lever else [])
    assert all("`fused=True`" in finding.advice.text for finding in told)
    assert all(finding.resource == "launch" for finding in told)


def test_in_a_file_the_gain_of_fusing_is_that_of_the_replay(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for step in range(2):
        start = step * 70_000
        builder.annotate(f"ProfilerStep#{step}", start, 70_000)
        builder.op("aten::mm", start, 30_000)
        builder.annotate("Optimizer.step#Adam.step", start + 30_000, 39_900)
        for k in range(3_500):
            builder.op(("aten::mul_", "aten::addcdiv_")[k % 2], start + 30_050 + k * 11, 8)
    finding = only(CODE, evidence_of(builder))
    assert finding.advice.lever == "fused_optimizer"
    assert "foreach=True" in finding.advice.text
    update = 39.9 / 70
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 0.9 * update, abs=0.02)
    assert finding.advice.gain.ratio_high == pytest.approx(1 - 0.59 * update, abs=0.02)
