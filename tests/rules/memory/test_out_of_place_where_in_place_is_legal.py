"""PYR214: results beside dead operands."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.memory.advice.rules.in_place import in_place
from pyrometer.rules.case import Case

CODE = "PYR214"

RUN = """\
import torch
from torch import nn
from torch.nn import functional as F

{decorator}
def run(loader, weight):
    outputs = []
    for x in loader:
        y = torch.mm(x, weight)
        outputs.append({call})
    return outputs
"""

NO_GRAD = "@torch.no_grad()"


def run(call: str, decorator: str = NO_GRAD) -> str:
    return RUN.format(call=call, decorator=decorator)


@pytest.fixture
def loops(matches):
    """Matches in a text whose loop surely works with tensors."""
    return lambda text: matches(
        CODE, text.replace("def run(loader, weight)", "def run(loader, weight: torch.Tensor)")
    )


@pytest.mark.parametrize(
    "call", ["F.relu(y @ weight)", "F.silu(torch.mm(x, weight))", "F.leaky_relu(F.linear(x, weight))"]
)
def test_it_finds_activations_of_new_products_and_the_fix_gives_the_same_bits(loops, fixed, call):
    text = run(call).replace("def run(loader, weight)", "def run(loader, weight: torch.Tensor)")
    (loop,) = loops(run(call))
    assert loop.line == 10
    assert loop.fix.fix_class == "exact"
    changed = fixed(text, [loop])
    assert "inplace=True" in changed
    batches, weight = [torch.randn(3, 3)], torch.randn(3, 3)
    results = []
    for version in (text, changed):
        names: dict[str, Any] = {}
        exec(version, names)
        results.append(names["run"](batches, weight)[0])
    assert torch.equal(*results)
    assert loops(changed) == []


@pytest.mark.parametrize(
    ("call", "decorator"),
    [
        ("F.relu(x @ weight)", ""),
        ("F.relu(y)", NO_GRAD),
        ("F.relu(x)", NO_GRAD),
        ("F.relu(x @ weight, inplace=True)", NO_GRAD),
        ("F.gelu(x @ weight)", NO_GRAD),
        ("F.relu(torch.mm(x, weight, out=y))", NO_GRAD),
        ("F.relu(x.view(-1))", NO_GRAD),
    ],
)
def test_it_is_silent_where_it_is_not_provable(loops, call, decorator):
    assert loops(run(call, decorator)) == []


class Net(nn.Module):
    """A layer and an activation."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.layer, self.inplace = nn.Linear(64, 64), inplace

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.layer(x), inplace=self.inplace)


def test_a_dead_operand_at_a_real_peak_is_told_and_in_place_it_goes(findings, rehearsed, recorded):
    x = torch.randn(2048, 64)
    profile = rehearsed(pm.Inference(Net(inplace=False), x), in_place)
    (finding,) = findings(CODE, Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0}))
    assert finding.where.file == __file__
    after = recorded(pm.Inference(Net(inplace=True), x))
    assert profile.peak_bytes - after.peak_bytes == finding.advice.gain.saves_bytes
    assert findings(CODE, Case(target="t", memory=profile)) == []  # a small peak
