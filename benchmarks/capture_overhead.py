"""What recording a trace costs, option by option: step time under the profiler over step time without, and bytes per step.

    python benchmarks/capture_overhead.py [--rounds 9] [--steps 5]

Every round captures each model once with each set of options, in an order drawn anew, so that drift of the machine falls on
all of them alike; each capture times the same steps without the profiler, before and after. Times are CPU times of the process,
which other programs disturb least, on one thread. Reported are medians over the rounds with the lowest and highest, of the
ratio and of the file size. `span` is measured apart, without a profiler.
"""

from __future__ import annotations

import argparse
import random
import time
import timeit
from statistics import median
from types import SimpleNamespace

import torch
from torch import nn

from pyrometer.trace.capture import step_times
from pyrometer.trace.capture.record import Capture, CaptureOptions
from pyrometer.trace.capture.workload import record_trace
from pyrometer.trace.span import span
from pyrometer.workload.training import Training

NOTHING = dict.fromkeys(CaptureOptions.__struct_fields__, False)
SETS = {
    "no option": NOTHING,
    **{name: NOTHING | {name: True} for name in NOTHING},
    "default": {},
    "all": dict.fromkeys(NOTHING, True),
}


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Once through."""
        return torch.relu(x + self.body(x))


def cnn() -> Training:
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), *[Block(32) for _ in range(4)], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    )  # fmt: skip
    batches = [(torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)))]
    return Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=1e-3), batches)


class Transformer(nn.Module):
    """Four small layers over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(500, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(64, 500)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of every token, in one row each."""
        return self.head(self.layers(self.embed(tokens))).flatten(0, 1)


def transformer() -> Training:
    model = Transformer()
    batches = [(torch.randint(0, 500, (4, 32)), torch.randint(0, 500, (128,)))]
    return Training(model, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=1e-4), batches)


def spread(values: list[float], digits: int = 2) -> str:
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def report(name: str, captures: dict[str, list[Capture]]) -> None:
    step_ms = median([c.step_untraced_s or 0.0 for capture in captures.values() for c in capture]) * 1e3
    print(f"{name}: {step_ms:.1f} ms per step without the profiler")
    for label, capture in captures.items():
        ratio = spread([c.overhead_ratio or 0.0 for c in capture])
        size = median(c.raw_bytes / c.num_steps for c in capture) / 1e3
        events = median(c.num_events / c.num_steps for c in capture)
        packed = median(c.predicted_bytes / c.raw_bytes for c in capture if c.predicted_bytes)
        print(
            f"  {label:14} {ratio:>18}x per step  {size:7.0f} kB and {events:6.0f} events per step, size predicted {packed:.2f}x"
        )


def span_cost_ns() -> float:
    def spanned() -> None:
        with span("lidar.preprocess"):
            pass

    return min(timeit.repeat(spanned, timer=time.process_time, number=100_000, repeat=9)) / 100_000 * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    step_times.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    coin = random.Random(args.seed)
    for name, work in {"CNN": cnn(), "transformer": transformer()}.items():
        captures: dict[str, list[Capture]] = {label: [] for label in SETS}
        for _ in range(args.rounds):
            for label in coin.sample(list(SETS), len(SETS)):
                trace = record_trace(work, steps=args.steps, warmup=1, options=CaptureOptions(**SETS[label]))
                assert trace.capture is not None
                captures[label].append(trace.capture)
        report(name, captures)
    print(f"a span without a profiler: {span_cost_ns():.0f} ns")


if __name__ == "__main__":
    main()
