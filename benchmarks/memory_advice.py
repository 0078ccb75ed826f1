"""Predicted against measured saving of every piece of advice: each is applied to a program as one would by hand.

    python benchmarks/memory_advice.py [--only micro-batching]

The advice comes from `weigh`, with all rules together, on the program as written. The changed program is built with torch
alone, and both are measured by the profiler's account of the allocator, which knows nothing of operators.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import pyrometer as pm
from pyrometer.memory.advice.advise import weigh
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.quantity import format_bytes, format_percent, format_seconds
from pyrometer.workload.call import Call

CLASSES = 4000


class Block(nn.Module):
    """As in a transformer, with causal attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.grow = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        y = self.norms[0](x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return x + self.grow(self.norms[1](x))


class Language(nn.Module):
    """Embedding, blocks and a head."""

    def __init__(self, classes: int = 256, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, 64)
        self.blocks = nn.ModuleList(Block(64) for _ in range(4))
        self.head = nn.Linear(64, classes)
        self.checkpointed = checkpointed

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        """What the head gets."""
        x = self.embed(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One pass."""
        return self.head(self.hidden(x))


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output.flatten(0, -2), target.flatten())


def language(
    *, classes: int = 256, checkpointed: bool = False, parts: int = 1, **settings: Any
) -> pm.Training:
    """A training whose peak is made of activations."""
    torch.manual_seed(0)
    model, x = Language(classes, checkpointed=checkpointed), torch.randint(classes, (8, 128))
    batches = [(part, part) for part in x.chunk(parts)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return pm.Training(
        model, settings.pop("loss", cross_entropy), optimizer, batches, accumulate=parts, **settings
    )


def perceptron(
    make: Callable[[Any], torch.optim.Optimizer] = lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=True),
    kind: torch.dtype = torch.float32,
) -> pm.Training:
    """A training whose peak is in the optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(8)]).to(kind)
    return pm.Training(
        model, functional.l1_loss, make(model.parameters()), [(torch.randn(8, 256, dtype=kind),) * 2]
    )


class InHooks(torch.optim.Optimizer):
    """Updates in the backward pass, as the advice writes it."""

    def __init__(self, parameters: Any) -> None:
        parameters = list(parameters)
        super().__init__(parameters, {})
        own = {p: torch.optim.AdamW([p], lr=1e-3, foreach=True) for p in parameters}

        def update(p: torch.Tensor) -> None:
            own[p].step()
            own[p].zero_grad(set_to_none=True)

        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(update)

    def step(self) -> None:
        """Nothing is left."""


def half_trained(*, frozen: bool) -> pm.Training:
    """A trunk that no optimizer updates."""
    work = language()
    model = work.parts.model
    for part in (model.embed, model.blocks) if frozen else ():
        part.requires_grad_(requires_grad=False)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    return pm.Training(model, cross_entropy, optimizer, work.batches)


def in_chunks(model: Any, batch: Any) -> torch.Tensor:
    """The loss as the advice writes it."""

    def summed(hidden: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model.head(hidden), target, reduction="sum")

    hidden, target = model.hidden(batch[0]).flatten(0, -2), batch[1].flatten()
    pairs = zip(hidden.chunk(8), target.chunk(8), strict=True)
    losses = [checkpoint(summed, h, t, use_reentrant=False) for h, t in pairs]
    return torch.stack(losses).sum() / target.numel()


def regression(loss: Callable[..., torch.Tensor]) -> pm.Training:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 1024))
    return pm.Training(
        model,
        loss,
        torch.optim.SGD(model.parameters(), lr=0.1),
        [(torch.randn(512, 64), torch.randn(512, 1024))],
    )


def activated(*, inplace: bool) -> pm.Inference:
    torch.manual_seed(0)
    layers = (nn.Linear(64, 1024), nn.ReLU(inplace), nn.Linear(1024, 64))
    return pm.Inference(nn.Sequential(*layers), torch.randn(1024, 64))


def evaluation(*, grad: bool) -> Call:
    torch.manual_seed(0)
    model, x = Language(), torch.randint(256, (8, 128))

    def evaluate() -> torch.Tensor:
        return cross_entropy(model(x), x)

    return Call(evaluate if grad else torch.no_grad()(evaluate))


@torch.no_grad()
def gathered(x: torch.Tensor) -> torch.Tensor:
    pieces = []
    for part in x.chunk(16):
        pieces.append(part.exp())  # noqa: PERF401 - as people write it
    return torch.cat(pieces)


@torch.no_grad()
def prepared(x: torch.Tensor) -> torch.Tensor:
    out, start = torch.empty_like(x), 0
    for part in x.chunk(16):
        out[start : start + len(part)] = part.exp()
        start += len(part)
    return out


class Pair(NamedTuple):
    """A program, and the same with one piece of advice followed."""

    slug: str
    before: Callable[[], Any]
    after: Callable[[], Any]


def pairs() -> Iterator[Pair]:
    """Everything that is tried."""
    yield Pair("activation-checkpointing", language, lambda: language(checkpointed=True))
    yield Pair("micro-batching", language, lambda: language(parts=4))
    yield Pair("bf16-autocast", language, lambda: language(amp="bfloat16"))
    yield Pair("bf16-parameters", perceptron, lambda: perceptron(kind=torch.bfloat16))
    yield Pair(
        "optimizer-implementation",
        perceptron,
        lambda: perceptron(lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True)),
    )
    yield Pair(
        "optimizer-sgd", perceptron, lambda: perceptron(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))
    )
    yield Pair(
        "optimizer-adafactor", perceptron, lambda: perceptron(lambda p: torch.optim.Adafactor(p, lr=1e-2))
    )
    yield Pair("step-in-backward", perceptron, lambda: perceptron(InHooks))
    yield Pair("freeze-untrained", lambda: half_trained(frozen=False), lambda: half_trained(frozen=True))
    yield Pair("no-grad", lambda: evaluation(grad=True), lambda: evaluation(grad=False))
    yield Pair("in-place", lambda: activated(inplace=False), lambda: activated(inplace=True))
    x = torch.randn(1024, 1024)
    yield Pair("preallocate", lambda: Call(gathered, x), lambda: Call(prepared, x))
    yield Pair(
        "clone-scalar-loss",
        lambda: regression(functional.mse_loss),
        lambda: regression(lambda output, target: functional.mse_loss(output, target).clone()),
    )
    yield Pair(
        "chunked-cross-entropy",
        lambda: language(classes=CLASSES),
        lambda: language(classes=CLASSES, loss=in_chunks),
    )


def exercise(pair: Pair) -> float | None:
    """Print one pair; returns predicted over measured saving, minus one."""
    work = pair.before()
    start = time.perf_counter()
    profile = pm.profile_memory(work, predict=False)
    middle = time.perf_counter()
    found = weigh(profile, work).advice
    took_s = time.perf_counter() - middle
    advice = next((one for one in found if one.slug == pair.slug), None)
    before, after = (record_allocator(one, steps=2).peak_bytes for one in (pair.before(), pair.after()))
    if advice is None or advice.saves_bytes is None:
        print(
            f"{pair.slug:26s} not advised; it saves {format_bytes(before - after)} of {format_bytes(before)}"
        )
        return None
    error = advice.saves_bytes / (before - after) - 1
    print(
        f"{pair.slug:26s} {format_bytes(before):>9s} {format_bytes(advice.saves_bytes):>9s} {format_bytes(before - after):>9s} {error:+8.2%}"
        f"  {format_seconds(middle - start):>8s} {format_seconds(took_s):>8s}  {len(found)} pieces of advice",
        flush=True,
    )
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="one piece of advice, such as micro-batching")
    arguments = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    heads = ("peak", "predicted", "measured", "error")
    print(f"{'advice':26s} " + " ".join(f"{head:>9s}" for head in heads) + "   profile    weigh")
    errors = [exercise(pair) for pair in pairs() if arguments.only in {None, pair.slug}]
    known = [abs(error) for error in errors if error is not None]
    if known:
        print(
            f"{len(errors)} tried, {len(known)} advised; worst error of a saving {format_percent(max(known))}"
        )


if __name__ == "__main__":
    main()
