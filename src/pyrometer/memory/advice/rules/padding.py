"""Padding that is computed with."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch

from pyrometer.advice import Advice
from pyrometer.errors import PyrometerError
from pyrometer.memory.advice.case import Case
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.prediction.rehearsal import rehearse
from pyrometer.memory.prediction.settings import Settings
from pyrometer.memory.profile import PredictedMemory
from pyrometer.quantity import Ratio, format_percent
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.counting import UnitCounter
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import argument_source
from pyrometer.workload.losses import batch_arguments
from pyrometer.workload.training import Training
from pyrometer.workload.variant import Variant
from pyrometer.workload.workload import Workload

MOST_BATCHES = 8
MUCH = 0.1
"""Padding below this share is not worth sorting or packing for."""


def padding(case: Case) -> Iterator[Advice]:
    """Bucket or pack sequences, so that hardly anything is padded."""
    work = case.work
    if not isinstance(work, (Training, Inference)) or work.mask is None:
        return
    ratio = _padding_ratio(work)
    if ratio is None or ratio < MUCH:
        return
    saving = case.tried(
        "sequences without padding",
        ("activations", "temporaries", "inputs"),
        lambda: _without_padding(work, ratio),
    )
    if saving is None:
        return
    yield Advice(
        slug="no-padding",
        fix_class="tolerance",
        title="batch sequences of like length, or pack them",
        why=f"{format_percent(ratio)} of the positions are padding, and memory grows with all of them; {case.where}",
        sketch="order = sorted(range(len(dataset)), key=lambda i: len(dataset[i]))  # batches of neighbours, the batches shuffled\n"
        "longest = int(lengths.max())\n"
        "inputs, mask = inputs[:, :longest], mask[:, :longest]  # and pad to the batch's longest, not to a fixed length",
        effect="the same results where the mask hides padding; batches differ in length, which torch.compile must be told "
        "(mark_dynamic). Predicted for as many real positions in sequences without padding",
        gain=saving.gain,
    )


def _padding_ratio(work: Training | Inference) -> Ratio | None:
    """Share of padding in some batches."""
    counter = UnitCounter(None, work.mask)
    try:
        if isinstance(work, Inference):
            source, fixed = argument_source(work.inputs, torch.device("cpu"), Variant())
            for _ in range(1 if fixed else MOST_BATCHES):
                counter.note(source())
        else:
            with contextlib.closing(BatchStream(work.batches)) as stream:
                for _ in range(MOST_BATCHES):
                    counter.note(batch_arguments(stream.next()))
        counter.count()
    except PyrometerError:
        return None  # the mask is not where it was said to be, which the workload itself tells
    return counter.padding_ratio


def _without_padding(work: Workload, ratio: Ratio) -> PredictedMemory:
    """The same work on as many real positions; fewer samples where no sequence can be told."""
    written = rehearse(work, Settings())
    if written.sequence is not None:
        return predict_memory(work, sequence=max(math.ceil(written.sequence * (1 - ratio)), 1))
    return predict_memory(work, batch=max(math.ceil((written.batch or 1) * (1 - ratio)), 1))
