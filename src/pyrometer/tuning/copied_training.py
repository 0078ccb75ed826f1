"""Training a copy for some steps: the user's model, optimizer, gradients and random numbers stay as they are."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.inference import home_of
from pyrometer.workload.losses import BatchLoss
from pyrometer.workload.state import preserved_grads, preserved_module, preserved_rng
from pyrometer.workload.training import Training, TrainingSession
from pyrometer.workload.variant import Variant

NUM_JUDGED = 8
"""Batches on which losses are compared: the first ones, the same before and after."""


def copied_training(work: Training) -> Training:
    """The same training with parts of its own."""
    own = copy.copy(work)
    own.parts = work.parts.copied(Variant())
    return own


@contextlib.contextmanager
def training_session(own: Training, users: Training) -> Iterator[TrainingSession]:
    """A session of a copy, at the end of which nothing of the user's has changed."""
    with preserved_rng(), preserved_grads(users.parts.with_gradients()), own.open() as session:
        session.activate()
        yield session


def train(session: TrainingSession, users: Training, steps: int) -> None:
    """Take steps of the optimizer.

    Raises:
        InputError: the loss uses the user's model from outside its arguments.
    """
    for _ in range(steps):
        session.step()
        if any(tensor.grad is not None for tensor in users.parts.with_gradients()):
            raise InputError(
                "loss: uses the model from outside its arguments, so it cannot be trained as a copy; "
                "write it as loss(model, batch)"
            )


def judged_batches(work: Training) -> list[Any]:
    """The first batches.

    Raises:
        InputError: batches come from an iterator, of which the first ones can be had only once.
    """
    if isinstance(work.batches, Iterator):
        raise InputError(
            "batches: got an iterator, which can be gone through only once; give a list or a DataLoader"
        )
    with preserved_rng(), contextlib.closing(BatchStream(work.batches)) as stream:
        return [stream.next() for _ in range(NUM_JUDGED)]


def mean_loss(model: nn.Module, batches: list[Any], loss: BatchLoss) -> float:
    """Over batches, in eval mode, without gradients; the model is left as it is."""
    device = home_of(model)
    with preserved_rng(), preserved_module(model, parameters=False), torch.no_grad():
        model.eval()
        moved = (
            pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), each) for each in batches
        )
        return sum(float(loss(model, batch)) for batch in moved) / len(batches)
