"""Where the next batch comes from, also where batches are copied ahead of their use."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from training_program import BATCH, SAMPLES, Noisy, StatefulLoader

from pyrometer.tuning.loop.batches import END, PositionedBatches
from pyrometer.tuning.loop.random_state import random_state, set_random_state


class Immediate:
    """A device that copies at once; the prefetcher runs ahead as on any other."""

    device = torch.device("cpu")

    def is_here(self, tensor):
        return getattr(tensor, "copied", False)

    def copying(self):
        return contextlib.nullcontext()

    def copy(self, tensor):
        copied = tensor.clone()
        copied.copied = True
        return copied

    def record(self):
        return None

    def wait(self, event):
        pass

    def hold(self, tensor):
        pass

    def is_done(self, event):
        return True

    def finish(self, event):
        pass

    def pin(self, tensor):
        return tensor


def seeded():
    random.seed(2)
    np.random.seed(2)  # noqa: NPY002
    torch.default_generator.manual_seed(2)


def batches_of(kind, streams):
    loader = StatefulLoader() if kind == "stateful" else DataLoader(Noisy(), BATCH, shuffle=True)
    return PositionedBatches(loader, torch.device("cpu"), streams)


def drawn(batches, number):
    """What a model sees of so many batches, that draws numbers itself in between."""
    seen = []
    while len(seen) < number:
        batch = batches.next()
        if batch is END:
            continue
        seen.append((batch[0].tolist(), float(torch.rand(())), random.random()))
    return seen


@pytest.mark.parametrize("streams", [None, Immediate()], ids=["asked for", "ahead"])
@pytest.mark.parametrize("kind", ["loader", "stateful"])
@pytest.mark.parametrize("taken", [0, 1, 5, SAMPLES // BATCH, SAMPLES // BATCH + 2])
def test_a_place_is_found_again(streams, kind, taken):
    seeded()
    reference = drawn(batches_of(kind, streams), 25)
    seeded()
    first = batches_of(kind, streams)
    begun = drawn(first, taken)
    place, state = first.state_dict(), random_state()
    assert begun + drawn(first, 25 - taken) == reference, "asking for the place changes nothing"
    torch.rand(7)
    second = batches_of(kind, streams)
    second.load_state_dict(place)
    set_random_state(state)
    assert begun + drawn(second, 25 - taken) == reference


def test_batches_ahead_do_not_move_the_numbers_of_the_model():
    seeded()
    torch.rand(())
    batches = batches_of("loader", Immediate())
    batches.next()
    numbers = [float(torch.rand(())) for _ in range(3) if batches.next() is not END]
    seeded()
    torch.rand(())
    iter(DataLoader(Noisy(), BATCH, shuffle=True))  # its seed for workers is drawn as ever
    assert numbers == [float(torch.rand(())) for _ in range(3)]


def test_samples_that_are_passed_over_are_not_made_again():
    class Counting(Noisy):
        made = 0

        def __getitem__(self, index):
            self.made += 1
            return super().__getitem__(index)

    def batches():
        return PositionedBatches(DataLoader(Counting(), BATCH, shuffle=True), torch.device("cpu"))

    first, second = batches(), batches()
    drawn(first, 6)
    second.load_state_dict(first.state_dict())
    assert second.loader.dataset.made == 0
    drawn(second, 1)
    assert second.loader.dataset.made == BATCH


def test_samplers_hear_of_the_epoch_and_their_state_is_kept():
    class Sampler:
        def __init__(self):
            self.epochs, self.number = [], 0

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

        def __iter__(self):
            self.number += 1
            return iter([self.number] * 8)

        def __len__(self):
            return 8

        def state_dict(self):
            return {"number": self.number}

        def load_state_dict(self, state):
            self.number = state["number"]

    def batches():
        return PositionedBatches(DataLoader(range(100), 4, sampler=Sampler()), torch.device("cpu"))

    first, second = batches(), batches()
    numbers = [first.next() for _ in range(5)]
    assert [batch if batch is END else batch.tolist() for batch in numbers] == [
        [1] * 4,
        [1] * 4,
        END,
        [2] * 4,
        [2] * 4,
    ]
    second.load_state_dict(first.state_dict())
    assert second.next() is END
    assert second.next().tolist() == [3] * 4
    assert first.loader.sampler.epochs == [0, 1]
    assert second.loader.sampler.epochs == [1, 2]
