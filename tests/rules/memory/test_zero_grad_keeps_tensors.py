"""PYR212: gradients that are filled with zeros."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.gradients import kept_gradients
from pyrometer.rules.case import Case

CODE = "PYR212"

TRAIN = """\
import torch
from torch import nn

def train(loader):
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    optimizer = {make}
    for x in loader:
        {line}
        model(x).pow(2).sum().backward()
        {middle}
        optimizer.step()
    return model.weight.detach()
"""

SGD = "torch.optim.SGD(model.parameters(), lr=0.1)"


def train(line: str, make: str = SGD, middle: str = "pass") -> str:
    return TRAIN.format(line=line, make=make, middle=middle)


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.zero_grad(set_to_none=False)  # <-",
        "optimizer.zero_grad(False)  # <-",
        "model.zero_grad(set_to_none=False)  # <-",
    ],
)
def test_it_finds_gradients_that_are_kept(fires, line):
    fires(CODE, train(line))


@pytest.mark.parametrize(
    "line",
    [
        "optimizer.zero_grad()",
        "optimizer.zero_grad(set_to_none=True)",
        "optimizer.zero_grad(set_to_none=keep)",
    ],
)
def test_it_is_silent_about_gradients_that_go(silent, line):
    silent(CODE, train(line))


@pytest.mark.parametrize(
    ("make", "middle", "fix_class"),
    [
        (SGD, "pass", "exact"),
        ("torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)", "pass", "semantic"),
        ("torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)", "pass", "semantic"),
        ("torch.optim.AdamW(model.parameters())", "pass", "semantic"),
        (SGD, "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "semantic"),
        (SGD, "print(model.weight.grad)", "semantic"),
        ("make_optimizer(model)", "pass", "semantic"),
    ],
)
def test_the_fix_is_exact_only_for_plain_descent_whose_gradients_nobody_reads(
    matches, make, middle, fix_class
):
    (match,) = matches(CODE, train("optimizer.zero_grad(set_to_none=False)", make, middle))
    assert match.fix.fix_class == fix_class


def test_the_exact_fix_trains_to_the_same_bits(matches, fixed):
    text = train("optimizer.zero_grad(set_to_none=False)")
    changed = fixed(text, matches(CODE, text))
    assert "optimizer.zero_grad()" in changed
    weights = []
    for version in (text, changed):
        names: dict[str, Any] = {}
        exec(version, names)
        weights.append(names["train"]([torch.ones(3, 2)] * 5))
    assert torch.equal(*weights)


def stepping(set_to_none: bool) -> pm.Call:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(256, 64)

    def step() -> None:
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)

    return pm.Call(step)


def test_gradients_that_a_real_loop_keeps_are_told_and_letting_them_go_lowers_its_peak(
    findings, rehearsed, recorded
):
    profile = rehearsed(stepping(set_to_none=False), kept_gradients)
    (finding,) = findings(CODE, Case(target="t", memory=profile))
    assert finding.advice.lever == "set_to_none"
    after = recorded(stepping(set_to_none=True))
    assert profile.peak_bytes - after.peak_bytes == pytest.approx(finding.advice.gain.saves_bytes, rel=0.2)
    assert (
        findings(CODE, Case(target="t", memory=rehearsed(stepping(set_to_none=True), kept_gradients))) == []
    )
