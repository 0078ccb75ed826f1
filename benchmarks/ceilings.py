# ruff: noqa: D101, D102 - the classes are programs
"""Measured ceilings against the truth: programs of which one place is replaced by hand by what it returns.

    OMP_NUM_THREADS=1 python benchmarks/ceilings.py [--budget 2] [--truth 4] [NAME …]

Each program is built twice: as it is, and with the place replaced in its text by a value that was computed before (by
the identity where gradients must pass). The truth is the ratio of both in paired blocks; the ceiling comes from the
program as it is alone. A row holds both, whether the ceiling's interval meets that of the truth, and what it took.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.comparison.interleaving import SHORT_CALL_S, Blocks
from pyrometer.bench.comparison.trial import open_sides
from pyrometer.bench.cutting.measuring import interval_of, measure_ceilings

Build = Callable[[bool], pm.Workload]
PROGRAMS: dict[str, tuple[str, Build]] = {}


def program(place: str) -> Callable[[Build], Build]:
    """Add a program by its name; `place` is the end of the name of what is cut out."""

    def add(build: Build) -> Build:
        PROGRAMS[build.__name__] = (place, build)
        return build

    return add


def positions(length: int, width: int) -> torch.Tensor:
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angle = torch.arange(length).unsqueeze(1) * rate
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


class Encoder(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(128, 128)
        self.table = positions(128, 128) if cut else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = positions(x.shape[1], x.shape[2]) if self.table is None else self.table
        return self.layer(x + table).relu()


@program("positions")
def table_of_positions(cut: bool) -> pm.Workload:
    return pm.Inference(Encoder(cut).eval(), torch.randn(2, 128, 128))


class RowNorm(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 256)
        self.known = self.scaled(torch.randn(64, 256)) if cut else None

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([row / row.norm().clamp_min(1e-6) for row in x])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.scaled(x) if self.known is None else self.known.clone()
        y += 1.0  # the caller writes into the result
        for _ in range(6):
            y = self.layer(y).relu()
        return y


@program("RowNorm.scaled")
def method_written_to(cut: bool) -> pm.Workload:
    return pm.Inference(RowNorm(cut).eval(), torch.randn(64, 256))


class Mixer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = x @ self.weight
            x = x.tanh()
        return x


class Stack(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(192, 192), nn.Linear(192, 10)
        self.mixer = nn.Identity() if cut else Mixer(192)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).relu()
        for _ in range(3):  # one module, called three times
            x = self.mixer(x)
        return self.last(x)


@program("Mixer.forward")
def shared_module_in_training(cut: bool) -> pm.Workload:
    model = Stack(cut)
    batch = (torch.randn(256, 192), torch.randint(0, 10, (256,)))
    return pm.Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 1e-3), [batch] * 4)


class Gated(nn.Module):
    def __init__(self, gate: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.gate = gate
        self.layer = nn.Linear(256, 256)
        self.drop = nn.Dropout(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.drop(self.gate(self.layer(x))))


def wave(x: torch.Tensor, *, terms: int) -> torch.Tensor:
    y = x
    for k in range(1, terms):
        y = y + torch.sin(x * k) / k
    return y


@program("wave")
def partial_with_dropout_in_training(cut: bool) -> pm.Workload:
    model = Gated((lambda x: x) if cut else functools.partial(wave, terms=12))
    batch = (torch.randn(128, 256), torch.randn(128, 256))
    return pm.Training(
        model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters(), 1e-3), [batch] * 4
    )


class Tempered(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(384, 384)
        self.cut = cut

    @property
    def temperature(self) -> float:
        return sum(1.0 / (1 + k * k) for k in range(0 if self.cut else 4000)) + 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).div(self.temperature).softmax(-1)


@program("Tempered.temperature")
def property_in_python(cut: bool) -> pm.Workload:
    return pm.Inference(Tempered(cut).eval(), torch.randn(64, 384))


class Logged(nn.Module):
    def __init__(self, log: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self.body = nn.Sequential(*(nn.Linear(256, 256) for _ in range(6)))
        self.log = log

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        self.log(y)
        return y


@program("record")
def callback_that_writes(cut: bool) -> pm.Workload:
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the program

    def record(y: torch.Tensor) -> None:
        file.seek(0)
        file.write(json.dumps(y.flatten()[:4000].tolist()))
        file.flush()
        os.fsync(file.fileno())

    return pm.Inference(Logged((lambda _: None) if cut else record).eval(), torch.randn(128, 256))


class Rendered:
    def __init__(self, cut: bool) -> None:
        self.cut = cut
        self.known = self.batch()

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.zeros(64, 64)
        for k in range(1, 60):
            x += torch.outer(torch.linspace(0, k, 64).sin(), torch.linspace(0, k, 64).cos())
        return x, x * 0.5

    def __iter__(self) -> Iterator[Any]:
        for _ in range(50):
            yield self.known if self.cut else self.batch()


@program("loader")
def loader(cut: bool) -> pm.Workload:
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
    return pm.Training(
        model, nn.functional.mse_loss, torch.optim.Adam(model.parameters(), 1e-3), Rendered(cut)
    )


def kept_boxes(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    order = scores.argsort(descending=True).tolist()
    kept: list[int] = []
    for i in order[:40]:
        inner = [
            torch.minimum(boxes[i, 2:], boxes[j, 2:]) - torch.maximum(boxes[i, :2], boxes[j, :2])
            for j in kept
        ]
        if all(float(size.clamp_min(0).prod()) < threshold for size in inner):
            kept.append(i)
    return torch.tensor(kept)


@program("kept_boxes")
def function_in_a_call(cut: bool) -> pm.Workload:
    features, weight = torch.randn(512, 256), torch.randn(256, 256)
    corner = torch.rand(100, 2) * 10
    boxes, scores = torch.cat([corner, corner + 1], 1), torch.rand(100)
    known = kept_boxes(boxes, scores, 0.2)

    def step(features: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            features = (features @ weight).relu() * 0.1
        kept = known if cut else kept_boxes(boxes, scores, 0.2)
        return features[kept].sum()

    return pm.Call(step, features)


WORD = re.compile(r"\w+|[^\w\s]")


class Texts(nn.Module):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(1000, 512)
        self.layer = nn.Linear(512, 512)
        self.texts = ["Measure before you change, and change one thing at a time." * 30] * 8
        self.known = self.numbers() if cut else None

    def numbers(self) -> list[list[int]]:
        return [[len(word) * 37 % 1000 for word in WORD.findall(text)] for text in self.texts]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers = self.numbers() if self.known is None else self.known
        return self.layer(self.embedding(torch.tensor(numbers))) + self.layer(x)


@program("Texts.numbers")
def lists_of_numbers(cut: bool) -> pm.Workload:
    return pm.Inference(Texts(cut).eval(), torch.randn(8, 512))


def contrast(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    loss = torch.zeros(())
    for row, other in zip(output, target, strict=True):
        loss = loss + (row - other).square().sum().sqrt()
    return loss / len(output)


@program("contrast")
def loss_in_training(cut: bool) -> pm.Workload:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
    batch = (torch.randn(96, 256), torch.randn(96, 256))
    # Any gradient does: here that of the cheapest loss there is.
    loss = (lambda output, _: output.mean()) if cut else contrast
    return pm.Training(model, loss, torch.optim.SGD(model.parameters(), 1e-3), [batch] * 4)


WAITING = {"callback_that_writes"}
"""Their time is not the processor's."""


def truth(
    slow: pm.Workload, fast: pm.Workload, budget_s: float, *, waits: bool
) -> tuple[float, float, float]:
    """The ratio with its interval: of processor time, or of the fastest calls where the program waits."""
    with contextlib.ExitStack() as stack:
        sides = open_sides(stack, [slow, fast])
        for side in (*sides, *sides):
            side.batch(3)
        blocks = Blocks(sides, "wall_min" if waits else "cpu", 5, seed=1)
        end = time.perf_counter() + budget_s
        while len(blocks.rows) < 6 or (time.perf_counter() < end and len(blocks.rows) < 100):
            blocks.run()
        estimate, low, high = map(math.exp, interval_of(blocks.log_ratios(1)))
        return estimate, low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for the ceilings of a program")
    parser.add_argument("--truth", type=float, default=4.0, help="seconds for the comparison with the truth")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    held, errors, costs = 0, [], []
    print(f"{'program':34} {'step':>9} {'truth':>20} {'ceiling':>20} {'error':>7} {'met':>4} {'took':>6}")
    for name in chosen.names or PROGRAMS:
        place, build = PROGRAMS[name]
        torch.manual_seed(0)
        work = build(False)
        step_s = pm.measure(work, budget_s=0.5).median_s
        ratio, low, high = truth(
            work, build(True), chosen.truth, waits=name in WAITING or step_s < SHORT_CALL_S
        )
        start = time.perf_counter()
        result = measure_ceilings(work, step_s=step_s, budget_s=chosen.budget)
        took = time.perf_counter() - start
        named = {c.where.function or c.what: c for c in result.ceilings}
        ceiling = next((c for title, c in named.items() if title.endswith(place)), None)
        told = f"{ratio:.3f} ({low:.3f}–{high:.3f})"
        costs.append(took)
        if ceiling is None:
            print(f"{name:34} {step_s * 1e3:6.2f} ms {told:>20}  none: {'; '.join(result.notes)}  {took:.2f}")
            continue
        met = ceiling.ratio_low <= high and low <= ceiling.ratio_high
        held += met
        errors.append(abs(math.log(ceiling.ratio / ratio)))
        bounds = f"{ceiling.ratio:.3f} ({ceiling.ratio_low:.3f}–{ceiling.ratio_high:.3f})"
        print(
            f"{name:34} {step_s * 1e3:6.2f} ms {told:>20} {bounds:>20} {ceiling.ratio - ratio:+7.3f} "
            f"{'yes' if met else 'no':>4} {took:5.2f}s"
        )
    print(
        f"{len(errors)} of {len(costs)} have a ceiling; intervals meet in {held}; median error {sorted(errors)[len(errors) // 2]:.1%}, "
        f"largest {max(errors):.1%}; {sum(costs) / len(costs):.2f} s each"
    )


if __name__ == "__main__":
    main()
