"""PYR208: a training whose activations dominate, the remedy, and what it brings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import pyrometer as pm
from pyrometer.hardware.environment import read_environment
from pyrometer.memory.advice.rules.checkpointing import checkpointing
from pyrometer.memory.advice.rules.micro_batches import micro_batches
from pyrometer.rules.case import Case

CODE = "PYR208"
ANY_SIZE = {"PYR208.min_peak_bytes": 0.0}


class Blocks(nn.Module):
    """Equal blocks, which can be checkpointed."""

    def __init__(self, recompute: bool) -> None:
        super().__init__()
        self.recompute = recompute
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x


def training(recompute: bool) -> pm.Training:
    torch.manual_seed(0)
    model = Blocks(recompute)
    batches = [(torch.randn(2048, 32), torch.randn(2048, 32))]
    return pm.Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.1), batches)


@pytest.fixture(scope="module")
def profiled(rehearsed) -> Any:
    return rehearsed(training(recompute=False), checkpointing, micro_batches)


def test_the_remedy_of_a_real_peak_is_told_with_its_rehearsed_saving(profiled, findings):
    (finding,) = findings(CODE, Case(target="t", memory=profiled, limits=ANY_SIZE))
    assert finding.evidence["dominates"]
    assert finding.evidence["share_of_peak"] > 0.5
    best = max(
        (one for one in profiled.advice if one.slug in str(finding.evidence["remedies"])),
        key=lambda a: a.saves_bytes,
    )
    assert finding.advice.gain.saves_bytes == best.saves_bytes
    assert finding.advice.sketch == best.sketch
    assert finding.advice.lever in {"checkpointing", "accumulate", "autocast_bf16"}
    assert finding.severity == "info"
    assert finding.resource == "peak:activations"


def test_checkpointing_lowers_the_peak_by_what_was_rehearsed(profiled, recorded):
    advice = next(one for one in profiled.advice if one.slug == "activation-checkpointing")
    after = recorded(training(recompute=True))
    assert profiled.peak_bytes - after.peak_bytes == pytest.approx(advice.saves_bytes, rel=0.2)


def test_a_small_peak_is_not_spoken_of(profiled, findings):
    assert findings(CODE, Case(target="t", memory=profiled)) == []


def test_it_is_silent_where_something_else_dominates_or_nothing_was_rehearsed(profile, findings):
    saving = {"activation-checkpointing": 30}
    others = profile({"activations": 40, "optimizer": 60}, advice=saving)
    without = profile({"activations": 80, "parameters": 20})
    even = profile({"activations": 35, "parameters": 33, "inputs": 32}, advice=saving)
    hardly = profile({"activations": 80, "parameters": 20}, advice={"activation-checkpointing": 5})
    for memory in (others, without, even, hardly):
        assert findings(CODE, Case(target="t", memory=memory)) == []


def test_it_is_a_warning_where_memory_is_short(profile, findings):
    free = read_environment()
    memory = profile({"activations": free.memory_bytes / 2**20}, advice={"activation-checkpointing": 2**20})
    (finding,) = findings(CODE, Case(target="t", memory=memory, environment=free))
    assert finding.severity == "warning"


def test_only_one_rule_says_that_its_part_dominates(profile):
    from pyrometer.rules.explain import findings_of
    from pyrometer.rules.registry import select

    slugs = ["activation-checkpointing", "optimizer-adafactor", "optimizer-implementation", "bf16-parameters"]
    memory = profile(
        {"activations": 45, "optimizer": 25, "temporaries": 20, "parameters": 10},
        advice=dict.fromkeys(slugs, 15),
    )
    findings = findings_of(Case(target="t", memory=memory), select(["PYR2"]))
    assert [finding.code for finding in findings] == ["PYR208", "PYR210"]
    assert [finding.evidence["dominates"] for finding in findings] == [True, False]
