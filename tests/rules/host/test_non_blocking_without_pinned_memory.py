"""PYR114: copies that are asked not to wait, from memory that is not pinned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.finding import Finding

CODE = "PYR114"

TEXT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")


def train(model: nn.Module, dataset) -> None:
    loader = DataLoader(dataset, batch_size=64{more})
    for inputs, targets in loader:
        inputs = inputs.to(device, {flag}){mark}
        model(inputs).sum().backward()
"""


def test_finds_copies_in_a_file_whose_loader_does_not_pin(lines: Any, marked: Any) -> None:
    for more in ("", ", pin_memory=False"):
        text = TEXT.format(more=more, flag="non_blocking=True", mark="  # <-")
        assert lines(CODE, text) == marked(text) == [11]


@pytest.mark.parametrize(
    ("more", "flag"),
    [
        (", pin_memory=True", "non_blocking=True"),
        (", pin_memory=device.type == 'cuda'", "non_blocking=True"),
        (", **options", "non_blocking=True"),
        ("", "non_blocking=False"),
    ],
)
def test_is_silent_where_batches_are_pinned_or_the_copy_may_wait(lines: Any, more: str, flag: str) -> None:
    assert lines(CODE, TEXT.format(more=more, flag=flag, mark="")) == []


def test_is_silent_where_no_loader_is_built(silent: Any) -> None:
    silent(CODE, "inputs = inputs.to(device, non_blocking=True)")


def fill(builder: Any, memory: str) -> Any:
    """Steps of 1 ms with a copy of 0.2 ms to the device."""
    for i in range(3):
        start = i * 1000
        builder.annotate(f"ProfilerStep#{i}", start, 1000)
        builder.python("train.py(8): train", start, 995)
        builder.op("aten::to", start + 10, 20)
        builder.launch(
            f"Memcpy HtoD ({memory} -> Device)", start + 11, start + 20, 200, cat="gpu_memcpy", bytes=4 << 20
        )
        builder.op("aten::mm", start + 225, 15)
        builder.launch("gemm", start + 227, start + 240, 700)
    return builder


def test_a_trace_proves_it_where_the_loader_is_elsewhere(builder: Any, evidence_of: Any, only: Any) -> None:
    text = TEXT.format(more=", **options", flag="non_blocking=True", mark="")
    finding = only(CODE, evidence_of(fill(builder, "Pageable"), "train.py", text))
    assert finding.where.line == 11
    assert finding.cost.share == pytest.approx(600 / 2930, rel=0.05)
    assert finding.confidence == "high"


def test_pinned_copies_and_copies_that_may_wait_are_left_alone(
    builder: Any, new_builder: Any, evidence_of: Any, findings: Callable[..., list[Finding]], tmp_path: Any
) -> None:
    asked = TEXT.format(more=", **options", flag="non_blocking=True", mark="")
    plain = TEXT.format(more=", **options", flag="copy=False", mark="")
    assert findings(CODE, evidence_of(fill(builder, "Pinned"), "train.py", asked)) == []
    assert findings(CODE, evidence_of(fill(new_builder(tmp_path), "Pageable"), "train.py", plain)) == []


def test_following_the_advice_silences_the_rule(lines: Any) -> None:
    text = TEXT.format(more="", flag="non_blocking=True", mark="")
    assert lines(CODE, text)
    assert lines(CODE, text.replace("batch_size=64", "batch_size=64, pin_memory=True")) == []
