"""The batch in parts, whose gradients are accumulated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn

from pyrometer.advice import Advice
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.case import Case
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.changes.micro_batches import in_parts, num_samples
from pyrometer.workload.training import Training

PARTS = 4


def micro_batches(case: Case) -> Iterator[Advice]:
    """A quarter of the batch at a time."""
    work = case.training
    if work is None:
        return
    samples = _samples(work)
    parts = min(PARTS, samples)
    if parts < 2:
        return
    saving = case.tried(
        "micro-batching",
        ("activations", "temporaries"),
        lambda: predict_memory(in_parts(work, parts)),
    )
    if saving is None:
        return
    norms = _batch_norms(work)
    yield Advice(
        slug="micro-batching",
        fix_class="semantic" if norms else "tolerance",
        lever="accumulate",
        title=f"split each batch of {samples} into {parts} and accumulate gradients",
        why=f"{case.where}, where {case.holds('activations', 'temporaries')}, which grow with the batch",
        sketch=f"for x, y in zip(inputs.chunk({parts}), targets.chunk({parts})):\n"
        f"    (loss(model(x), y) / {parts}).backward()\n"
        "optimizer.step()\n"
        "optimizer.zero_grad(set_to_none=True)",
        effect="equal gradients to rounding for a loss that is a mean over samples"
        + (
            f", but {', '.join(norms)} then normalises over smaller parts, which trains otherwise"
            if norms
            else ""
        )
        + "; smaller operators use the device less well, so steps may take longer",
        gain=saving.gain,
    )


def _samples(work: Training) -> int:
    try:
        with contextlib.closing(BatchStream(work.batches)) as stream:
            return num_samples(stream.next())
    except PyrometerError:
        return 0  # what holds no samples cannot be split


def _batch_norms(work: Training) -> list[str]:
    """Kinds of layers that normalise over the batch."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    parts = (part for module in work.parts.modules for part in module.modules())
    return sorted({type(part).__name__ for part in parts if isinstance(part, norms)})
