"""What observing a training script costs per step: observed against not, in one process, block by block.

    python benchmarks/observation_overhead.py [--blocks 100] [--steps 20]

The hooks are put in and taken out between blocks of steps, in an order that a coin decides for each pair, so that drift of
the machine falls on both sides alike. Each pair gives the ratio of the blocks' median steps; reported is the median
of the ratios with a 99 % interval from the order statistics, of CPU time, which other programs disturb least, and of wall
time. Two models: one with few large modules and one with many
small ones, whose nested calls are what observation costs most.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binom
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.workload.script.events import read_events
from pyrometer.workload.script.observe import event_cost_ns
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install

SETTLE_STEPS = 4
CONFIDENCE = 0.99


def models() -> dict[str, tuple[nn.Module, int, int]]:
    """Name → model, width of its input, batch size; each step takes about 5 ms on one core."""
    wide = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    deep = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(40)], nn.Linear(64, 10))
    return {"few large modules": (wide, 256, 64), "many small modules": (deep, 64, 32)}


def endless_batches(width: int, batch: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    data = TensorDataset(torch.randn(64 * batch, width), torch.randint(0, 10, (64 * batch,)))
    while True:
        yield from DataLoader(data, batch_size=batch)


def training_step(model: nn.Module, width: int, batch: int) -> Callable[[], None]:
    batches = endless_batches(width, batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    def step() -> None:
        x, y = next(batches)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    return step


def block_medians_s(step: Callable[[], None], num_steps: int) -> np.ndarray:
    """Median CPU and wall time of a step, `[2]`."""
    for _ in range(SETTLE_STEPS):
        step()
    times = np.empty((num_steps, 2))
    for index in range(num_steps):
        start = time.process_time(), time.perf_counter()
        step()
        times[index] = time.process_time() - start[0], time.perf_counter() - start[1]
    return np.median(times, axis=0)


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """Distribution-free interval of the median."""
    ordered = np.sort(ratios)
    low = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5))
    return float(ordered[low]), float(ordered[len(ordered) - 1 - low])


def measure(name: str, step: Callable[[], None], args: argparse.Namespace) -> None:
    coin = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        observer = Observer(EventLog(str(path)), torch)
        blocks = np.empty((args.blocks, 2, 2))
        for block in blocks:
            for observed in coin.sample([0, 1], 2):
                undo = install(torch, observer)[0] if observed else None
                block[observed] = block_medians_s(step, args.steps)
                if undo is not None:
                    undo()
        num_events = len(read_events(path).kind) / (args.blocks * (args.steps + SETTLE_STEPS))
        cost_ns = event_cost_ns(Path(folder) / "calibration")
    ratios = blocks[:, 1] / blocks[:, 0]
    for column, clock in enumerate(("CPU time", "wall time")):
        low, high = interval(ratios[:, column])
        print(
            f"{name}, {clock}: {np.median(blocks[:, 0, column]) * 1e3:.2f} ms per step; "
            f"observed/plain {np.median(ratios[:, column]):.4f} ({low:.4f}–{high:.4f})"
        )
    print(f"{name}: {num_events:.1f} events per step of {cost_ns:.0f} ns each")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    for name, (model, width, batch) in models().items():
        step = training_step(model, width, batch)
        block_medians_s(step, args.steps)
        measure(name, step, args)


if __name__ == "__main__":
    main()
