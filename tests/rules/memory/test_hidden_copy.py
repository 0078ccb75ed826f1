"""PYR213: copies in the hot path, in text, in traces and at the peak."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.advice.rules.copies import copies
from pyrometer.rules.case import Case

CODE = "PYR213"

NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        {line}
        return y
"""


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("y = y[[0, 1, 2]]  # <-", "y[0:3]"),
        ("y = y[:, [2, 3]]  # <-", "y[:, 2:4]"),
        ("y = y[..., [0, 1]]  # <-", "y[..., 0:2]"),
        ("y = y[torch.arange(4)]  # <-", "y[:4]"),
        ("y = y[torch.arange(2, 4)]  # <-", "y[2:4]"),
        ("y = y.double().float()  # <-", "y.float()"),
        ("y = y.float().half()  # <-", "y.half()"),
    ],
)
def test_it_finds_copies_that_are_needless_by_their_text(matches, fires, line, instead):
    fires(CODE, NET.format(line=line))
    (match,) = matches(CODE, NET.format(line=line))
    assert f"`{instead}`" in match.advice
    x = torch.randn(6, 8)
    written = line.removeprefix("y = ").partition("  #")[0]
    scope = {"torch": torch, "y": x}
    assert torch.equal(eval(written, scope), eval(instead, scope))


@pytest.mark.parametrize(
    "line",
    [
        "y = y[[0, 2, 4]]",
        "y = y[[3, 2, 1]]",
        "y = y[[1]]",
        "y = y[0:3]",
        "y = y[torch.arange(len(y)), order]",
        "y = y[torch.randperm(4)]",
        "y = y[torch.arange(0, 8, 2)]",
        "y[[0, 1, 2]] = 0",
        "y = y.half().float()",
        "y = y.permute(1, 0).contiguous().reshape(-1)",
        "names = ['a', 'b'][0]",
    ],
)
def test_it_is_silent_about_gathers_stores_and_copies_that_may_be_needed(silent, line):
    silent(CODE, NET.format(line=line))


def test_set_up_code_is_silent(silent):
    silent(CODE, "import torch\n\nx = torch.zeros(8, 8)\ny = x[[0, 1, 2]]\n")


class Turning(nn.Module):
    """Sums a batch in another order of its dimensions."""

    def __init__(self, copy: bool) -> None:
        super().__init__()
        self.copy = copy
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.transpose(0, 1)
        if self.copy:
            turned = turned.contiguous()
        return self.layer(turned.amax(dim=(0, 1))[None, :4])


def test_a_copy_that_takes_the_step_is_told_at_its_line_and_without_it_nothing(observe, findings):
    x = torch.randn(512, 512, 8)
    found, after = (
        findings(CODE, observe(pm.Inference(Turning(copy), x), "trace", sources=[Path(__file__)]))
        for copy in (True, False)
    )
    (told,) = (one for one in found if one.cost is not None)
    assert "contiguous()" in Path(__file__).read_text(encoding="utf-8").splitlines()[told.where.line - 1]
    assert told.cost.share > 0.05
    assert told.advice.gain.ratio_high == 1.0
    assert [one for one in after if one.cost is not None] == []


def test_the_view_gives_the_same_bits():
    with_copy = Turning(copy=True)
    without = Turning(copy=False)
    without.load_state_dict(with_copy.state_dict())
    x = torch.randn(16, 16, 8)
    assert torch.equal(with_copy(x), without(x))


def step_with_a_copy(x: torch.Tensor) -> torch.Tensor:
    kept = x.clone()
    return (kept + 1.0).sum()


def step_with_a_view(x: torch.Tensor) -> torch.Tensor:
    return (x + 1.0).sum()


def test_a_needless_copy_at_the_peak_is_told_with_its_line_and_leaving_it_out_brings_what_was_tried(
    findings, rehearsed, recorded
):
    x = torch.randn(20_000)
    profile = rehearsed(pm.Call(step_with_a_copy, x), copies)
    (finding,) = findings(CODE, Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0}))
    assert "x.clone()" in Path(__file__).read_text(encoding="utf-8").splitlines()[finding.where.line - 1]
    assert (finding.advice.fix_class, finding.confidence) == ("semantic", "high")
    after = recorded(pm.Call(step_with_a_view, x))
    assert profile.peak_bytes - after.peak_bytes == finding.advice.gain.saves_bytes
    assert torch.equal(step_with_a_copy(x), step_with_a_view(x))
    assert findings(CODE, Case(target="t", memory=profile)) == []  # a small peak
