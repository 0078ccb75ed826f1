"""Optimizers that update tensor by tensor: what they would win by updating all at once."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from pyrometer.trace.analysis.recoverable import largest_gains
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge

ADAM = ("aten::lerp_", "aten::mul_", "aten::addcmul_", "aten::sqrt", "aten::div", "aten::addcdiv_")


def training(
    builder: Any, optimizer: str, names: tuple[str, ...], *, number: int = 60, apart: float = 10
) -> Any:
    """Steps of 200 µs of products and an update of so many operators, with Python between them."""
    length = 200 + apart * number + 20
    for step in range(4):
        at = step * length
        builder.annotate(f"ProfilerStep#{step}", at, length)
        builder.op("aten::mm", at, 200)
        builder.annotate(f"Optimizer.step#{optimizer}.step", at + 205, apart * number + 10)
        for i, name in zip(range(number), cycle(names), strict=False):
            builder.op(name, at + 210 + i * apart, apart * 0.6)
    return builder.read()


def test_an_update_tensor_by_tensor_is_told_with_what_it_wins(builder: Any) -> None:
    trace = training(builder, "Adam", ADAM)
    gain = largest_gains(trace)[0]
    assert (gain.kind, gain.name) == ("update", "Adam")
    assert gain.ratio == pytest.approx(1 - 610 / 2 / 820, abs=0.02)
    assert "fused=True" in gain.what
    sentence = judge(report_rank(trace)).sentence
    assert "; Adam updates tensor by tensor, 74." in sentence
    assert f"with fused=True or foreach=True {1 / gain.ratio:.2f}× faster" in sentence


@pytest.mark.parametrize(
    ("optimizer", "names", "number"),
    [
        ("Adam", ("aten::_foreach_add_", "aten::_foreach_mul_"), 60),  # all tensors at once already
        ("Adam", ("aten::_fused_adam_",), 60),
        ("SGD", ("aten::add_",), 60),  # one operator per tensor
        ("Shampoo", ADAM, 60),  # no update in one piece is known
        ("Adam", ADAM, 6),  # one tensor
    ],
)
def test_other_updates_have_nothing_to_win(
    builder: Any, optimizer: str, names: tuple[str, ...], number: int
) -> None:
    trace = training(builder, optimizer, names, number=number)
    assert all(gain.kind != "update" for gain in largest_gains(trace))
    assert "updates tensor by tensor" not in judge(report_rank(trace)).sentence
