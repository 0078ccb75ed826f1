"""PYR206: full garbage collections in every step."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
from torch import nn

import pyrometer as pm

CODE = "PYR206"

LOOP = """\
import gc
import torch
from torch import nn

def train(loader, epochs):
    model = nn.Linear(2, 2)
    for epoch in range(epochs):
        for step, x in enumerate(loader):
            model(x).sum().backward()
            {line}
        {after}
"""


def loop(line: str, after: str = "pass") -> str:
    return LOOP.format(line=line, after=after)


@pytest.mark.parametrize("line", ["gc.collect()  # <-", "gc.collect(2)  # <-", "freed = gc.collect()  # <-"])
def test_it_finds_full_collections_in_every_step(fires, line):
    fires(CODE, loop(line))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("pass", "gc.collect()"),
        ("if step % 500 == 0:\n                gc.collect()", "pass"),
        ("gc.collect(0)", "pass"),
        ("gc.collect(generation=1)", "pass"),
        ("collector.collect()", "pass"),
    ],
)
def test_it_is_silent_about_seldom_and_young_collections(silent, line, after):
    silent(CODE, loop(line, after))


def test_a_collection_whose_result_is_used_has_no_fix(matches):
    assert matches(CODE, loop("freed = gc.collect()"))[0].fix is None
    assert matches(CODE, loop("gc.collect()"))[0].fix.fix_class == "semantic"


HEAP = 500_000
"""Objects of a small program."""


class Collecting(nn.Module):
    """Collects garbage for every batch."""

    def __init__(self, collect: bool) -> None:
        super().__init__()
        self.collect = collect
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.collect:
            gc.collect()
        return self.layer(x)


def test_a_real_trace_tells_line_and_share_and_without_the_call_nothing(observe, findings):
    _heap = [[] for _ in range(HEAP)]  # or there is little to look through
    found, after = (
        findings(
            CODE,
            observe(pm.Inference(Collecting(collect), torch.randn(2, 8)), "trace", sources=[Path(__file__)]),
        )
        for collect in (True, False)
    )
    told = [one for one in found if one.cost is not None]
    assert len(told) == 1
    assert (
        Path(__file__).read_text(encoding="utf-8").splitlines()[told[0].where.line - 1].strip()
        == "gc.collect()"
    )
    assert told[0].cost.share > 0.5
    assert [one for one in after if one.cost is not None] == []
