"""What observing a training script costs per step: observed and plain steps in pairs, in one process or on each rank of a job.

    python benchmarks/observation_overhead.py [--pairs 1500]
    torchrun --standalone --nproc-per-node=2 benchmarks/observation_overhead.py    # each rank of a data-parallel job

The hooks are switched on and off between single steps; a coin decides which of a pair comes first, so that drift of the
machine falls on both sides alike. Reported is the median difference within a pair with a 99 % interval from the order
statistics, of CPU time, which other programs disturb least, and of wall time; and what share of a 5 ms step that is.
Two models: one with few large modules and one with many small ones, whose nested calls pass through the hooks too.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.stats import binom
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.workload.script.cost import event_cost_ns
from pyrometer.workload.script.events import read_events
from pyrometer.workload.script.startup._pyrometer_inside.log import EventLog
from pyrometer.workload.script.startup._pyrometer_inside.observer import Observer
from pyrometer.workload.script.startup._pyrometer_inside.torch_hooks import install

CONFIDENCE = 0.99
STEP_S = 5e-3


def models() -> dict[str, tuple[nn.Module, int, int]]:
    """Name → model, width of its input, batch size; each step takes 2 to 5 ms on one core."""
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


def time_step(step: Callable[[], None]) -> tuple[float, float]:
    """CPU and wall time of a step."""
    cpu, wall = time.process_time(), time.perf_counter()
    step()
    return time.process_time() - cpu, time.perf_counter() - wall


def interval(values: np.ndarray) -> tuple[float, float]:
    """Distribution-free interval of the median."""
    ordered = np.sort(values)
    low = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5))
    return float(ordered[low]), float(ordered[len(ordered) - 1 - low])


def measure(name: str, step: Callable[[], None], num_pairs: int, coin: random.Random) -> None:
    times = np.empty((num_pairs, 2, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        switch, _ = install(torch, Observer(EventLog(str(path)), torch))
        for pair in times:
            for observed in coin.sample([0, 1], 2):
                switch(bool(observed))
                pair[observed] = time_step(step)
        switch(False)
        num_events = len(read_events(path).kind) / num_pairs
        cost_ns = event_cost_ns(Path(folder) / "calibration")
    rank = f"rank {dist.get_rank()}, " if dist.is_initialized() else ""
    print(f"{rank}{name}: {num_events:.1f} events per step, {cost_ns:.0f} ns each by our own estimate")
    for column, clock in enumerate(("CPU time", "wall time")):
        differences = times[:, 1, column] - times[:, 0, column]
        median, (low, high) = float(np.median(differences)), interval(differences)
        print(
            f"  {clock}: {np.median(times[:, 0, column]) * 1e3:.2f} ms per step, observed {median * 1e6:+.0f} µs "
            f"({low * 1e6:+.0f} to {high * 1e6:+.0f}): {median / STEP_S:.2%} ({low / STEP_S:.2%} to {high / STEP_S:.2%}) of 5 ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    for name, (model, width, batch) in models().items():
        # All ranks toss the same coins, so that no observed step waits for a plain one.
        step = training_step(DistributedDataParallel(model) if dist.is_initialized() else model, width, batch)
        for _ in range(50):
            step()
        measure(name, step, args.pairs, random.Random(args.seed))


if __name__ == "__main__":
    main()
