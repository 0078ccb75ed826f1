"""Predicted against measured memory: every cell is a program that really ran, predicted from another one that did not.

    python benchmarks/memory_prediction.py [--only transformer] [--fast]

The prediction always starts from the same plain program (float32, AdamW, one batch size, no checkpointing) and is asked for
the cell's batch, dtype, optimizer, autocast and checkpointing. The cell itself is built with torch alone, and measured
twice: operator by operator, and by the profiler's account of the allocator, which knows nothing of operators.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import pyrometer as pm
from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.ledger.reading import ledger_of
from pyrometer.memory.prediction.lifetimes import Lifetimes, sizes_of
from pyrometer.memory.prediction.predict import predicted
from pyrometer.memory.prediction.rehearsal import Rehearsal, rehearse
from pyrometer.memory.prediction.settings import Settings, settings_of
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.memory.recording.steps import record_steps
from pyrometer.quantity import format_bytes, format_percent, format_seconds

BATCHES = (8, 32)
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=1e-3),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
}


class Blocks(nn.Module):
    """A stem, repeated blocks that may be checkpointed, and a head."""

    def __init__(self, stem: nn.Module, blocks: list[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.checkpointed = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed and self.training else block(x)
        return self.head(x)


class Attending(nn.Module):
    """A causal transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        batch, length, width = x.shape
        split = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Last(nn.Module):
    """A recurrent layer's outputs alone."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        return self.layer(x)[0]


def mlp() -> Blocks:
    blocks = [nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.1)) for _ in range(4)]
    return Blocks(nn.Linear(256, 512), blocks, nn.Linear(512, 64))


def cnn() -> Blocks:
    blocks = [nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()) for _ in range(4)]
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 64))
    return Blocks(nn.Conv2d(3, 32, 3, padding=1), blocks, head)


def transformer() -> Blocks:
    return Blocks(nn.Embedding(1000, 128), [Attending(128, 4) for _ in range(3)], nn.Linear(128, 1000))


def encoder() -> Blocks:
    blocks = [nn.TransformerEncoderLayer(128, 4, 256, batch_first=True) for _ in range(3)]
    return Blocks(nn.Linear(64, 128), blocks, nn.Linear(128, 64))


def lstm() -> Blocks:
    return Blocks(
        nn.Linear(64, 96), [Last(nn.LSTM(96, 96, batch_first=True)) for _ in range(2)], nn.Linear(96, 64)
    )


def gru() -> Blocks:
    return Blocks(
        nn.Linear(64, 96), [Last(nn.GRU(96, 96, batch_first=True)) for _ in range(2)], nn.Linear(96, 64)
    )


MODELS: dict[str, tuple[Callable[[], Blocks], Callable[[int], tuple[torch.Tensor, torch.Tensor]]]] = {
    "mlp": (mlp, lambda b: (torch.randn(b * 8, 256), torch.randn(b * 8, 64))),
    "cnn": (cnn, lambda b: (torch.randn(b, 3, 24, 24), torch.randint(0, 64, (b,)))),
    "transformer": (
        transformer,
        lambda b: (torch.randint(0, 1000, (b, 64)), torch.randint(0, 1000, (b, 64))),
    ),
    "encoder": (encoder, lambda b: (torch.randn(b, 48, 64), torch.randn(b, 48, 64))),
    "lstm": (lstm, lambda b: (torch.randn(b, 40, 64), torch.randn(b, 40, 64))),
    "gru": (gru, lambda b: (torch.randn(b, 40, 64), torch.randn(b, 40, 64))),
}


@dataclass(frozen=True)
class Cell:
    """One program."""

    model: str
    optimizer: str | None = "AdamW"  # None for inference
    checkpointed: bool = False
    precision: str = "float32"  # or "autocast", or "bfloat16"
    batch: int = BATCHES[0]

    @property
    def name(self) -> str:
        """In words."""
        parts = [self.model, self.optimizer or "inference", self.precision, f"batch {self.batch}"]
        return ", ".join(parts + ["checkpointed"] * self.checkpointed)


def cells() -> Iterator[Cell]:
    """The grid."""
    for model, batch in itertools.product(MODELS, BATCHES):
        core = model in {"mlp", "cnn", "transformer"}
        for optimizer in OPTIMIZERS if core else ("SGD momentum", "AdamW"):
            yield Cell(model, optimizer, batch=batch)
        for precision in ("autocast", "bfloat16"):
            yield Cell(model, precision=precision, batch=batch)
        for precision in ("float32", "autocast") if core else ():
            for optimizer in ("SGD", "AdamW"):
                yield Cell(model, optimizer, checkpointed=True, precision=precision, batch=batch)
        for precision in ("float32", "bfloat16"):
            yield Cell(model, None, precision=precision, batch=batch)


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross-entropy for classes, mean squared error for values."""
    if target.is_floating_point():
        return functional.mse_loss(output, target.to(output.dtype))
    return functional.cross_entropy(output.flatten(0, -2), target.flatten())


def program(cell: Cell) -> pm.Training | pm.Inference:
    """The program of a cell, built with torch alone."""
    make, batch_of = MODELS[cell.model]
    torch.manual_seed(0)
    model, (x, y) = make(), batch_of(cell.batch)
    model.checkpointed = cell.checkpointed
    if cell.precision == "bfloat16":
        model = model.to(torch.bfloat16)
        x, y = (tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor for tensor in (x, y))
    if cell.optimizer is None:
        return pm.Inference(model, x)
    optimizer = OPTIMIZERS[cell.optimizer](model.parameters())
    amp = "bfloat16" if cell.precision == "autocast" else None
    return pm.Training(model, loss_of, optimizer, [(x, y)], amp=amp)


def rehearsed(cell: Cell, plain: pm.Training | pm.Inference) -> Rehearsal:
    """The cell, from the plain program."""
    batch = cell.batch * 8 if cell.model == "mlp" else cell.batch
    changes: dict[str, Any] = {"batch": batch, "dtype": "bfloat16" if cell.precision == "bfloat16" else None}
    if cell.optimizer is not None:
        changes["optimizer"] = cell.optimizer
        changes["amp"] = "bfloat16" if cell.precision == "autocast" else None
        changes["checkpoint"] = (
            [f"blocks.{i}" for i in range(len(plain.parts.model.blocks))] if cell.checkpointed else None
        )
    return rehearse(plain, settings_of(**changes))


def tensor_ledger(rehearsal: Rehearsal) -> dict[str, int]:
    """The ledger at the peak of tensors, which is what a recording of operators sees."""
    lives = Lifetimes.of(rehearsal.log, cuda=False)
    sizes = lives.without(sizes_of(rehearsal.log), "workspace")
    return lives.ledger(sizes, lives.peak(sizes).event)


def worst_category(told: dict[str, int], measured: dict[str, int]) -> int:
    """The largest difference."""
    return max(abs(told[name] - measured[name]) for name in CATEGORIES)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds that it took."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def exercise(cell: Cell) -> tuple[float, float, float, float]:
    """Print one cell; returns the errors against operators, allocator, and of the worst category, and the time ratio."""
    plain = program(Cell(cell.model, "AdamW" if cell.optimizer else None, batch=4))
    rehearsal, prediction_s = timed(lambda: rehearsed(cell, plain))
    memory = predicted(rehearsal, Settings())
    work = program(cell)
    log = record_steps(work)
    account = record_allocator(work, steps=2)
    with work.open() as session:
        _, real_s = timed(lambda: [session.step(session.prepare()) for _ in range(2)])
    error = memory.tensor_peak_bytes / log.peak_bytes - 1
    against_allocator = memory.peak_bytes / account.peak_bytes - 1
    worst = worst_category(tensor_ledger(rehearsal), ledger_of(log.live_at(log.peak_event))) / log.peak_bytes
    print(
        f"{cell.name:58s} {format_bytes(memory.peak_bytes):>9s} {format_bytes(log.peak_bytes):>9s} {format_bytes(account.peak_bytes):>9s}"
        f" {error:+8.3%} {against_allocator:+8.3%} {worst:8.3%}  {memory.peak_phase or '–':9s} {format_seconds(prediction_s):>8s}"
        f" {format_seconds(real_s):>8s}",
        flush=True,
    )
    return error, against_allocator, worst, prediction_s / real_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=MODELS, help="one model")
    parser.add_argument("--fast", action="store_true", help="every sixth cell")
    arguments = parser.parse_args()
    chosen = [cell for cell in cells() if arguments.only in {None, cell.model}][:: 6 if arguments.fast else 1]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, two steps each")
    heads = ("predicted", "operators", "allocator", "error", "", "category")
    print(f"{'cell':58s} " + " ".join(f"{head:>9s}" for head in heads) + "  peak in     predict     run")
    rows = [exercise(cell) for cell in chosen]
    for name, column in (("operators", 0), ("allocator", 1), ("worst category", 2)):
        errors = [abs(row[column]) for row in rows]
        within = sum(error <= 0.05 for error in errors) / len(errors)
        exact = sum(error == 0 for error in errors)
        print(
            f"against {name}: {len(errors)} cells, worst {format_percent(max(errors))}, "
            f"{format_percent(within)} within 5 %, {exact} exact"
        )
    ratios = sorted(row[3] for row in rows)
    print(f"time of a prediction over that of two real steps: median {ratios[len(ratios) // 2]:.1f}")


if __name__ == "__main__":
    main()
