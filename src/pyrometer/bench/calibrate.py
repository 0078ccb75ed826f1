"""What difference can this machine resolve? A/A trials: the same program on both sides.

Identical sides must come out the same. How much the blocks scatter says which difference could be seen in a given
time, and flipping the labels of the blocks again and again says how often a verdict would be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.calibration import Calibration, Resolution
from pyrometer.bench.comparison.compare import compare
from pyrometer.bench.comparison.decision import DecisionRule, decide
from pyrometer.bench.comparison.pairing import resolution, robust_sd
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.machine import machine_caveats
from pyrometer.bench.stage import Progress
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.peak_search import measure_peaks
from pyrometer.quantity import Seconds
from pyrometer.workload.inference import Inference
from pyrometer.workload.workload import Workload

DEFAULT_BUDGET_S = 40.0
PEAKS_SHARE = 0.25
NUM_RELABELLINGS = 200


def calibrate(
    works: Sequence[Workload] | None = None,
    *,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    peaks: bool = True,
    device: torch.device | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Run A/A trials and measure the machine's peaks.

    Args:
        works: what to try; by default three networks with steps of roughly 0.1, 1 and 30 ms.
        budget_s: for everything; a quarter of it goes to the peaks.
        peaks: whether to measure the peaks.
        device: where the default networks and the peaks run; the CPU by default.
        progress: told how far it is.

    Raises:
        KeyboardInterrupt: Ctrl-C ended it; trials cut short would claim a worse machine than this is.
    """
    where = device or torch.device("cpu")
    chosen = list(works) if works is not None else default_works(where)
    share_s = budget_s * (1 - PEAKS_SHARE if peaks else 1) / len(chosen)
    verdicts: list[Verdict] = []
    with ConditionsProbe() as probe:
        for number, work in enumerate(chosen):
            if progress is not None:
                progress(number * share_s / budget_s, f"A/A of {work.name}")
            verdicts.append(compare(work, work, budget_s=share_s))
            if verdicts[-1].interrupted:  # `compare` keeps its blocks instead of raising
                raise KeyboardInterrupt
        if progress is not None and peaks:
            progress(1 - PEAKS_SHARE, "peaks")
        measured = measure_peaks(where, budget_s=budget_s * PEAKS_SHARE) if peaks else None
    return Calibration(
        resolutions=[resolve(work.name, verdict) for work, verdict in zip(chosen, verdicts, strict=True)],
        peaks=measured,
        conditions=probe.conditions,
        advice=machine_caveats(probe.conditions),
        elapsed_s=sum(v.elapsed_s for v in verdicts),
    )


def resolve(name: str, verdict: Verdict) -> Resolution:
    """What the blocks of an A/A comparison say about the machine."""
    blocks = np.array(verdict.log_ratios)
    block_s = max(verdict.blocks_s / max(len(blocks), 1), 1e-6)
    return Resolution(
        name=name,
        step_s=verdict.baseline_s or 0.0,
        metric=verdict.metric,
        num_blocks=len(blocks),
        block_s=block_s,
        noise=robust_sd(blocks),
        resolves_10s=resolution(blocks, 10 / block_s),
        resolves_60s=resolution(blocks, 60 / block_s),
        outcome=verdict.outcome,
        false_share=false_share(blocks, DecisionRule()),
    )


def false_share(blocks: Floats, rule: DecisionRule, num_relabellings: int = NUM_RELABELLINGS) -> float:
    """Share of `faster` or `slower` verdicts on the same blocks with labels flipped at random.

    >>> false_share(np.random.default_rng(0).normal(0, 0.05, 80), DecisionRule()) <= 0.02
    True
    """
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(num_relabellings):
        flipped = blocks * rng.choice([-1.0, 1.0], len(blocks))
        looks = [look for look in rule.looks if look <= len(blocks)]
        outcomes = (decide(flipped[:look], rule).outcome for look in looks)
        wrong += next((outcome for outcome in outcomes if outcome), None) in {"faster", "slower"}
    return wrong / num_relabellings


def default_works(device: torch.device) -> list[Workload]:
    """Three networks whose steps take very different times: a small MLP, a wide MLP, a convolutional stack."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        small = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        wide = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512))
        deep = nn.Sequential(
            *(
                layer
                for i in range(4)
                for layer in (nn.Conv2d(3 if i == 0 else 32, 32, 3, padding=1), nn.ReLU())
            )
        )
        inputs = [torch.randn(16, 64), torch.randn(32, 512), torch.randn(2, 3, 112, 112)]
    names = ["small MLP", "wide MLP", "convolutions"]
    return [
        Inference(net.to(device), x.to(device), name=name)
        for net, x, name in zip((small, wide, deep), inputs, names, strict=True)
    ]
