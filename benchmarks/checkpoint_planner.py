"""The checkpoint planner against every k-th block at the same peak, and against trying everything.

    python benchmarks/checkpoint_planner.py [--models cnn,unet] [--ks 1,2,3] [--budget 40] [--policies full] [--clock wall]

For each model and k the peak of checkpointing every k-th block is measured; the planner gets that peak as its limit. Then steps as
written, every k-th block and the plan run in turn, in blocks of random mirrored order. Recompute time is what a step takes longer than
as written; how much less the plan needs is given with a 95 % bootstrap interval over blocks. Both peaks are measured.

Last, on a small model, every set of blocks is run: the least recompute time of those within the limit against the plan's.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.bench.clock import HostClock
from pyrometer.bench.comparison.compare import compare_many
from pyrometer.quantity import format_bytes, format_percent, format_seconds
from pyrometer.tuning.checkpointing.choosing import Wish, every_k_choices
from pyrometer.tuning.checkpointing.planner import Planner
from pyrometer.tuning.checkpointing.solve import Choice, cheapest
from pyrometer.tuning.checkpointing.verify import match_gradients, measured_peak
from pyrometer.workload.changes.policies import POLICIES


class CpuClock(HostClock):
    """CPU time of the process: with one thread the same as wall time on an idle machine, and steady on a busy one."""

    def __init__(self) -> None:
        super().__init__()
        self.mark = time.process_time_ns


class Conv(nn.Sequential):
    """Two convolutions with norms."""

    def __init__(self, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inner, outer, 3, stride, 1),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
            nn.Conv2d(outer, outer, 3, 1, 1),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    """Skips from the way down to the way up."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList([Conv(a, b) for a, b in zip([3, *widths[:-1]], widths, strict=True)])
        self.up = nn.ModuleList([Conv(3 * a, a) for a in reversed(widths[:-1])])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Down, up, and a class for each pixel."""
        skips = []
        for index, block in enumerate(self.down):
            x = block(x if index == 0 else functional.max_pool2d(x, 2))
            skips.append(x)
        for block, skip in zip(self.up, reversed(skips[:-1]), strict=True):
            x = block(torch.cat([functional.interpolate(x, scale_factor=2), skip], 1))
        return self.head(x)


class Block(nn.Module):
    """Attention and a network of its own width."""

    def __init__(self, width: int, factor: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, factor * width), nn.GELU(), nn.Linear(factor * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass, batch first."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Blocks of given widths."""

    def __init__(self, factors: list[int], width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(512, width)
        self.blocks = nn.ModuleList([Block(width, factor) for factor in factors])
        self.head = nn.Linear(width, 512)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def training(model: nn.Module, loss: Callable[..., torch.Tensor], batch: Any, name: str) -> pm.Training:
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    return pm.Training(model, loss, optimizer, [batch], name=name)


def per_token(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def cnn() -> pm.Training:
    widths = [(3, 16, 1), (16, 16, 1), (16, 32, 2), (32, 64, 2), (64, 128, 2), (128, 256, 2)]
    tail = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    model = nn.Sequential(nn.Sequential(*[Conv(*width) for width in widths]), nn.Sequential(*tail))
    batch = torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))
    return training(model, nn.CrossEntropyLoss(), batch, "CNN, shrinking maps")


def unet() -> pm.Training:
    batch = torch.randn(4, 3, 64, 64), torch.randint(0, 2, (4, 64, 64))
    return training(UNet(), functional.cross_entropy, batch, "U-Net with skips")


def transformer() -> pm.Training:
    tokens = torch.randint(0, 512, (8, 64))
    return training(
        Transformer([1, 8, 2, 4, 1, 12, 2, 6]), per_token, (tokens, tokens), "transformer, uneven blocks"
    )


def uniform() -> pm.Training:
    tokens = torch.randint(0, 512, (8, 64))
    return training(Transformer([4] * 8), per_token, (tokens, tokens), "transformer, equal blocks")


def mlp() -> pm.Training:
    widths = [128, 1024, 32, 1024, 2048, 64, 2048, 128]
    layers = [nn.Sequential(nn.Linear(a, b), nn.GELU()) for a, b in itertools.pairwise(widths)]
    x = torch.randn(512, 128)
    return training(nn.Sequential(*layers), nn.L1Loss(), (x, x), "MLP with bottlenecks")


CLOCKS = {"cpu": CpuClock, "wall": HostClock}
MODELS = {"cnn": cnn, "unet": unet, "transformer": transformer, "mlp": mlp, "uniform": uniform}


def planner_for(work: pm.Training, options: argparse.Namespace) -> Planner:
    planner = Planner(work, Wish(None, None), budget_s=options.budget, clock=CLOCKS[options.clock]())
    planner.measure("auto", options.policies)
    return planner


def against_every_k(planner: Planner, k: int, choice: Choice, options: argparse.Namespace) -> None:
    work = planner.work
    by_hand = planner.planned(choice)
    limit = measured_peak(by_hand)
    planned = cheapest(planner.model, max(limit, choice.peak_bytes))
    assert planned is not None
    planned_work = planner.planned(planned)
    peak = measured_peak(planned_work)
    assert match_gradients(work, planned_work).equal
    sides = f"  k={k}: peak {format_bytes(limit)} by hand ({len(choice.options)} modules), {format_bytes(peak)} planned"
    print(f"{sides} ({len(planned.options)}), predicted {format_bytes(planned.peak_bytes)}")
    saving = 1 - planned.seconds / choice.seconds
    print(f"     recompute time by the model: {format_percent(saving, 2)} less")
    if not planned.options:
        print("     the limit is met as written: checkpointing by hand brings nothing")
        return
    verdicts = compare_many(
        work, [by_hand, planned_work], budget_s=options.budget, margin=0.02, clock=CLOCKS[options.clock]()
    )
    first, second = (np.expm1(np.array(verdict.log_ratios)) for verdict in verdicts)
    estimate, low, high = relative_saving(first, second)
    step = verdicts[0].baseline_s
    print(
        f"     measured: a step of {format_seconds(step)} takes {format_percent(float(np.median(first)), 3)} longer by hand, "
        f"{format_percent(float(np.median(second)), 3)} planned: {format_percent(estimate, 2)} less recompute time "
        f"({format_percent(low, 2)} to {format_percent(high, 2)}), {len(first)} blocks"
    )


def relative_saving(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """How much less the second adds than the first: from medians over blocks, with a bootstrap interval."""
    draws = np.random.default_rng(0).integers(0, len(first), size=(2000, len(first)))
    savings = 1 - np.median(second[draws], axis=1) / np.median(first[draws], axis=1)
    low, high = np.quantile(savings, [0.025, 0.975])
    return 1 - float(np.median(second) / np.median(first)), float(low), float(high)


def against_everything(options: argparse.Namespace) -> None:
    """Every set of blocks of a small model, run; the recompute time is the sum of measured costs."""
    tokens = torch.randint(0, 512, (8, 64))
    work = training(Transformer([1, 8, 2, 6]), per_token, (tokens, tokens), "small transformer")
    planner = Planner(work, Wish(None, None), budget_s=options.budget, clock=CLOCKS[options.clock]())
    planner.measure("blocks", ("full",))
    sets = [
        choice
        for size in range(len(planner.options) + 1)
        for choice in itertools.combinations(range(len(planner.options)), size)
    ]
    ran = []
    for chosen in sets:
        choice = Choice(chosen, planner.model.peak(chosen), planner.model.seconds(chosen))
        ran.append((measured_peak(planner.planned(choice)), choice.seconds, chosen))
    base, least = max(ran)[0], min(ran)[0]
    worst = 0.0
    for share in (0.0, 0.25, 0.5, 0.75, 0.95):
        limit = int(least + share * (base - least)) + 64 * 1024  # above the random states that are kept
        best = min(seconds for peak, seconds, _ in ran if peak <= limit)
        planned = cheapest(planner.model, limit)
        assert planned is not None
        peak = next(peak for peak, _, chosen in ran if chosen == planned.options)
        worst = max(worst, planned.seconds / best - 1 if best else 0.0)
        print(
            f"  limit {format_bytes(limit)}: best of {len(ran)} sets {format_seconds(best)}, plan {format_seconds(planned.seconds)}, "
            f"its peak {format_bytes(peak)} {'fits' if peak <= limit else 'DOES NOT FIT'}"
        )
    errors = [abs(planner.model.peak(chosen) / peak - 1) for peak, _, chosen in ran]
    print(f"  the plan is at most {format_percent(worst, 2)} above the best")
    print(f"  peaks of {len(ran)} sets: model and measurement at most {format_percent(max(errors), 2)} apart")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ks", default="1,2,3")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds for each comparison")
    parser.add_argument("--policies", default=",".join(POLICIES), type=lambda text: tuple(text.split(",")))
    parser.add_argument(
        "--clock", choices=CLOCKS, default="cpu", help="cpu: for one thread on a busy machine"
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for name in options.models.split(","):
        work = MODELS[name]()
        planner = planner_for(work, options)
        print(
            f"{work.name}: peak {format_bytes(planner.peak_bytes)}, {len(planner.options)} options",
            flush=True,
        )
        choices = dict(every_k_choices(planner.model, planner.block_numbers))
        for k in map(int, options.ks.split(",")):
            if k in choices:
                against_every_k(planner, k, choices[k], options)
    print("every set of blocks of a small transformer")
    against_everything(options)


if __name__ == "__main__":
    main()
