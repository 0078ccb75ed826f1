"""PYR514: threads against processors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.record import Conditions
from pyrometer.rules.case import Case
from pyrometer.source.module import Module
from pyrometer.workload.inference import Inference
from pyrometer.workload.program.record import Program

CODE = "PYR514"


@pytest.fixture(scope="module")
def measured(observe: Any) -> Any:
    return observe(Inference(torch.nn.Linear(64, 64), torch.randn(64, 64)), "measurement").measurement


def evidence(
    measured: Any, *, threads: int, usable: float, busy: float, competing: float | None = 0.0
) -> Case:
    environment = read_environment()
    cpu = msgspec.structs.replace(environment.cpu, usable_cpus=usable)
    return Case(
        target="test",
        program=Program(
            kind="inference", device="cpu", compiled=False, grad_mode="inference_mode", settings={"threads": threads}
        ),
        environment=msgspec.structs.replace(environment, cpu=cpu),
        measurement=msgspec.structs.replace(
            measured,
            cpu_s=busy * measured.median_s,
            conditions=Conditions(
                load_average=1.0, logical_cpus=8, competing_load=competing, steal_share=0.0,
                involuntary_switches_per_s=0.0, frequency_ratio=1.0, throttled=False,
            ),
        ),
    )  # fmt: skip


def test_threads_beyond_the_quota_are_told(measured: Any, only: Any) -> None:
    finding = only(CODE, evidence(measured, threads=32, usable=2.0, busy=2.0))
    assert finding.severity == "warning"
    assert finding.advice.rewrite == "torch.set_num_threads(2)"
    assert finding.advice.gain is None  # what it brings is for a trial to say


def test_the_line_that_sets_so_many_is_the_place(measured: Any, only: Any) -> None:
    module = Module.parse("serve.py", "import torch\n\ntorch.set_num_threads(32)\n")
    case = msgspec.structs.replace(evidence(measured, threads=32, usable=2.0, busy=2.0), modules=(module,))
    assert only(CODE, case).where.line == 3


def test_threads_that_are_all_busy_beside_idle_processors_are_worth_a_try(measured: Any, only: Any) -> None:
    finding = only(CODE, evidence(measured, threads=2, usable=8.0, busy=1.98))
    assert (finding.severity, finding.confidence) == ("info", "low")
    assert finding.advice.gain.ratio_low == 0.25
    assert finding.advice.gain.ratio_high == 1


@pytest.mark.parametrize(
    "case",
    [(2, 2.0, 1.7, 1), (16, 16.0, 8.5, 7), (8, 8.0, 9.0, 1)],
)
def test_threads_that_share_their_processors_with_other_processes_are_told(
    measured: Any, only: Any, case: tuple[int, float, float, int]
) -> None:
    threads, usable, competing, fitting = case
    given = evidence(measured, threads=threads, usable=usable, busy=1.0, competing=competing)
    finding = only(CODE, given)
    assert (finding.severity, finding.confidence) == ("warning", "medium")
    assert finding.advice.rewrite == f"torch.set_num_threads({fitting})"
    assert finding.evidence["used_by_others"] == competing


@pytest.mark.parametrize(
    "case",
    [
        (2, 2.0, 2.0, 0.0),
        (3, 2.0, 2.0, 0.0),  # one more is often on purpose
        (2, 8.0, 1.2, 0.0),  # they wait for something else
        (2, 8.0, 2.0, 3.0),  # others use the rest
        (2, 8.0, 2.0, None),
        (1, 1.5, 1.0, 0.0),
        (1, 2.0, 1.0, 1.9),  # one thread waits for no other
        (2, 2.0, 1.5, 0.4),  # others use little
        (4, 16.0, 3.0, 8.0),  # enough are left
    ],
)
def test_is_silent_where_it_fits_or_cannot_be_told(
    measured: Any, findings: Any, case: tuple[int, float, float, float | None]
) -> None:
    threads, usable, busy, competing = case
    given = evidence(measured, threads=threads, usable=usable, busy=busy, competing=competing)
    assert findings(CODE, given) == []


def test_the_advice_sets_the_threads_and_gives_the_same(measured: Any, only: Any) -> None:
    x = torch.randn(128, 128)
    before = x @ x
    exec(only(CODE, evidence(measured, threads=32, usable=2.0, busy=2.0)).advice.rewrite, {"torch": torch})
    assert torch.get_num_threads() == 2
    torch.testing.assert_close(x @ x, before)
