"""What looking at memory costs a step: recording, the profiler's account, tracking, beside the plain step.

    python benchmarks/memory_overhead.py [--rounds 12]

Rounds are interleaved and begin with another way each time; figures are CPU time of the process over that of plain steps in the same
round, as median and quartiles. Leak watching, which is spread over many steps, is in `leak_watch.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

import pyrometer as pm
from pyrometer.memory.private.allocation_events import allocator_events
from pyrometer.memory.recording.recorder import AllocationRecorder

STEPS = 10


def programs() -> dict[str, Callable[[], None]]:
    """Training steps: many small operators, and few large ones."""
    return {
        "small operators": step_of(
            nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(40)]), 32, 32
        ),
        "large operators": step_of(
            nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024)), 256, 1024
        ),
    }


def step_of(model: nn.Module, batch: int, width: int) -> Callable[[], None]:
    """One training step."""
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(batch, width)

    def step() -> None:
        model(x).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


@contextmanager
def recorded() -> Iterator[None]:
    """Every operator."""
    with AllocationRecorder(torch.device("cpu")):
        yield


def run(step: Callable[[], None], way: str) -> None:
    """Some steps, looked at in one way."""

    def steps() -> None:
        for _ in range(STEPS):
            step()

    if way == "plain":
        steps()
    elif way == "recorder":
        with recorded():
            steps()
    elif way == "profiler's account":
        allocator_events(steps)
    else:
        with pm.track_memory(tensors=way == "track_memory"):
            steps()


WAYS = ("plain", "recorder", "profiler's account", "track_memory", "track_memory(tensors=False)")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"{'program':<18}{'way':<30}{'per step':>12}{'of plain':>12}   quartiles")
    for name, step in programs().items():
        for way in WAYS:
            run(step, way)  # imports, optimizer state, caches
        spent: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(rounds):
            for way in WAYS[turn % len(WAYS) :] + WAYS[: turn % len(WAYS)]:
                began = time.process_time()
                run(step, way)
                spent[way].append(time.process_time() - began)
        for way in WAYS:
            ratios = [mine / plain for mine, plain in zip(spent[way], spent["plain"], strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            each = statistics.median(spent[way]) / STEPS
            print(f"{name:<18}{way:<30}{each * 1e3:>9.2f} ms{middle:>11.2f}×   {low:.2f}–{high:.2f}")


if __name__ == "__main__":
    main()
