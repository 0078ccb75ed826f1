"""In a layer only those waits are told that another way of writing avoids."""

from __future__ import annotations

import textwrap

import pytest

from pyrometer.rules.lint.check import check_text
from pyrometer.rules.registry import find_rule

LAYER = """\
import torch
from torch import nn
from scipy.optimize import linear_sum_assignment

device = torch.device("cuda")


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = self.mix(x)
        mask = y > 0
"""


def codes(body: str, code: str) -> list[str]:
    """The findings of one rule in a layer with these lines."""
    text = LAYER + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"
    return [hit.rule.code for hit in check_text("net.py", text, [find_rule(code)]).found]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("PYR106", "return x[mask].mean()"),
        ("PYR106", "x[mask] += 1\nreturn x"),
        ("PYR106", "x[mask] = x[mask] * 2\nreturn x"),
        ("PYR106", "kept = x[mask]\nwanted = y[mask]\nreturn nn.functional.mse_loss(kept, wanted)"),
        ("PYR107", "return x.masked_select(mask).sum()"),
        ("PYR107", "count = len(mask.nonzero())\nreturn x / count"),
        ("PYR104", "if x.max() > 3:\n    x = x / x.max()\nreturn x"),
        ("PYR104", "if torch.isnan(x).any():\n    x = x.nan_to_num()\nreturn x"),
        ("PYR101", "return x / x.max().item()"),
        ("PYR101", "self.last = x.mean().item()\nreturn x"),
        ("PYR101", "return [row.sum().item() for row in x]"),
        ("PYR102", "return x - x.detach().cpu().mean().to(device)"),
    ],
)
def test_what_can_be_written_without_waiting_is_told(code: str, body: str) -> None:
    assert set(codes(body, code)) == {code}


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("PYR106", "return x[mask]"),
        ("PYR107", "rows, columns = mask.nonzero(as_tuple=True)\nreturn rows, x[rows, columns]"),
        ("PYR107", "return torch.unique(y)"),
        ("PYR104", "if y.min() < 0:\n    raise ValueError(y)\nreturn x"),
        ("PYR104", "if mask.any():\n    return self.mix(x)\nreturn x"),
        ("PYR104", "if torch.isnan(x).any():\n    raise ValueError(x)\nreturn x"),
        ("PYR104", "torch.distributed.all_reduce(y)\nif torch.isinf(y).any():\n    x = x / 2\nreturn x"),
        ("PYR104", "if torch.equal(x, y):\n    x = x * 2\nreturn x"),
        ("PYR101", "if y.min().item() < 0:\n    raise ValueError(y)\nreturn x"),
        ("PYR101", "return x.new_zeros(int(y.max()))"),
        ("PYR101", "return x.split(y.tolist())"),
        ("PYR102", "return linear_sum_assignment(x.cpu())"),
        ("PYR102", "cost = x.detach().cpu().numpy()\nreturn linear_sum_assignment(cost)"),
    ],
)
def test_what_its_result_needs_is_left_alone(code: str, body: str) -> None:
    assert codes(body, code) == []


@pytest.mark.parametrize(
    ("base", "methods", "fires"),
    [
        ("Transform", "", False),
        ("Transform", "\n    def inverse(self, x):\n        return x\n", True),
        ("nn.Module", "", True),
    ],
)
def test_transforms_of_samples_work_ahead_of_the_step(base: str, methods: str, fires: bool) -> None:
    text = LAYER.replace("(nn.Module)", f"({base}, nn.Module)" if base == "Transform" else f"({base})")
    text = text.replace("from torch import nn", "from torch import nn\nfrom samples import Transform")
    text += f"        return [row.sum().item() for row in x]\n{methods}"
    assert bool(check_text("net.py", text, [find_rule("PYR101")]).found) is fires
