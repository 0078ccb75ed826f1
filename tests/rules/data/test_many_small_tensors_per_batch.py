"""PYR309: batches of many small tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.workload.program.record import InputTensor, Program


def program(count: int, num_bytes: int, device: str = "cuda") -> Program:
    inputs = [
        InputTensor(name=str(i), shape=[num_bytes // 4], dtype="float32", device="cpu", num_bytes=num_bytes)
        for i in range(count)
    ]
    return Program(
        kind="training", device=device, compiled=False, grad_mode="grad", autocast_dtype=None, inputs=inputs
    )


def test_many_small_inputs_of_a_device_are_told(findings: Callable[..., list[Finding]]) -> None:
    (finding,) = findings("PYR309", Case(target="a", program=program(40, 512)))
    assert "a step is given 40 tensors, the median one of 512 B" in finding.message
    assert finding.links == ["/program/inputs"]


@pytest.mark.parametrize(
    ("count", "num_bytes", "device"),
    [(3, 512, "cuda"), (40, 2**20, "cuda"), (40, 512, "cpu"), (0, 4, "cuda")],
)
def test_few_or_large_ones_and_the_cpu_are_left_alone(
    count: int, num_bytes: int, device: str, findings: Callable[..., list[Finding]]
) -> None:
    assert findings("PYR309", Case(target="a", program=program(count, num_bytes, device))) == []


@pytest.mark.parametrize("slug", ["pack-tensors", "arrays-not-lists"])
def test_the_loaders_advice_replaces_the_rules_own(
    slug: str,
    loading: Callable[..., Any],
    advice: Callable[..., Any],
    findings: Callable[..., list[Finding]],
) -> None:
    evidence = Case(target="a", program=program(40, 512), loading=loading(advice=[advice(slug)]))
    (finding,) = findings("PYR309", evidence)
    assert finding.message == f"why {slug}"


def test_the_replacement_is_one_copy_with_the_same_values(documented: Callable[..., str]) -> None:
    copies = []
    kept = torch.Tensor.to

    class Counted(torch.Tensor):
        def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
            copies.append(1)
            return kept(self.as_subclass(torch.Tensor), "cpu")

    counts = []
    for heading in ("Example", "Use instead"):
        text = documented("PYR309", heading).replace("torch.randn(32)", "torch.ones(32).as_subclass(Counted)")
        names: dict[str, Any] = {"Counted": Counted}
        copies.clear()
        exec(compile(text, heading, "exec"), names)
        counts.append(len(copies))
        assert len(names["on_device"]) == 100
        assert all(torch.equal(value, torch.ones(32)) for value in names["on_device"].values())
    assert counts == [100, 1]
