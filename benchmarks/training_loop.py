"""What `pm.TrainingLoop` costs beside a loop that is written by hand: both train the same model in turns.

Compared is CPU time of the process, on one thread: it is the same beside other load.

python benchmarks/training_loop.py [--rounds 40]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.quantiles import mean_interval
from pyrometer.quantity import format_ratio, format_seconds

Batches = list[tuple[torch.Tensor, torch.Tensor]]
STEPS = 100


def net(width: int, depth: int) -> nn.Module:
    """A perceptron."""
    torch.manual_seed(0)
    hidden = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(32, width), *hidden, nn.Linear(width, 10))


def bare(model: nn.Module, batches: Batches) -> Callable[[], None]:
    """The loop as people write it, which reads its loss every 50 steps."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    criterion = nn.CrossEntropyLoss()

    def run() -> None:
        for number, (x, y) in enumerate(batches, 1):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if number % 50 == 0:
                loss.item()

    return run


def looped(model: nn.Module, batches: Batches) -> Callable[[], None]:
    """The same by the training loop, with phases and losses of every step."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    loop = pm.TrainingLoop(pm.Training(model, nn.CrossEntropyLoss(), optimizer, batches))
    epochs = 0

    def run() -> None:
        nonlocal epochs
        epochs += 1
        loop.run(epochs=epochs)

    return run


def seconds(run: Callable[[], None]) -> float:
    """CPU time per step."""
    start = time.process_time()
    run()
    return (time.process_time() - start) / STEPS


def main() -> None:
    """Print the ratio and the difference per step, with intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    chance = np.random.default_rng(0)
    for width, depth, size in ((32, 1, 16), (256, 4, 64), (512, 6, 256)):
        batches = [(torch.randn(size, 32), torch.randint(10, (size,))) for _ in range(STEPS)]
        sides = [bare(net(width, depth), batches), looped(net(width, depth), batches)]
        for side in sides:
            side()
        times = np.empty((rounds, 2))
        for row in times:
            for at in chance.permutation(2):
                row[at] = seconds(sides[at])
        logs = np.log(times[:, 1] / times[:, 0])
        middle, (low, high) = float(np.median(logs)), mean_interval(logs, 0.95)
        extra = float(np.median(times[:, 1] - times[:, 0]))
        ratio = format_ratio(*(float(np.exp(value)) for value in (middle, low, high)))
        step = format_seconds(float(np.median(times[:, 0])))
        print(
            f"{depth + 2} layers of {width}, batch {size}: {step} a step by hand; {ratio}, {extra * 1e6:+.1f} µs a step"
        )


if __name__ == "__main__":
    main()
