"""Switching blocks by pressure, with memory that is told by the test."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.checkpointing.adaptive import AdaptiveCheckpoint, FreeMemory
from pyrometer.tuning.checkpointing.plan import plan_checkpoints
from pyrometer.workload.changes.checkpointing import CheckpointedForward


class Told:
    """A reader that reports what it is told."""

    def __init__(self, free):
        self.free = free

    def __call__(self):
        return FreeMemory(self.free, 1000)


def model():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


def stepped(adaptive, count=1):
    for _ in range(count):
        adaptive.step()
    return adaptive.active


def test_blocks_go_on_one_by_one_while_memory_is_tight_and_stay_in_between():
    told = Told(50)
    with AdaptiveCheckpoint(model(), ["2", "0"], reader=told, patience=3) as adaptive:
        assert stepped(adaptive) == ["2"]
        assert stepped(adaptive) == ["2", "0"]
        assert stepped(adaptive) == ["2", "0"]
        told.free = 150  # neither tight nor roomy
        assert stepped(adaptive, 20) == ["2", "0"]


def test_blocks_go_off_only_after_lasting_plenty():
    told = Told(50)
    with AdaptiveCheckpoint(model(), ["2", "0"], reader=told, patience=3) as adaptive:
        stepped(adaptive, 2)
        told.free = 400
        assert stepped(adaptive, 2) == ["2", "0"]
        told.free = 200
        stepped(adaptive)
        told.free = 400
        assert stepped(adaptive, 2) == ["2", "0"]  # counted anew
        assert stepped(adaptive) == ["2"]
        assert stepped(adaptive, 3) == []


def test_the_least_reading_of_a_step_counts():
    told = Told(900)
    net = model()
    with AdaptiveCheckpoint(net, ["0"], reader=told) as adaptive:
        told.free = 10
        net(torch.randn(2, 4))
        told.free = 900
        net(torch.randn(2, 4))
        assert stepped(adaptive) == ["0"]
        told.free = 10
        with torch.no_grad():
            net(torch.randn(2, 4))  # validation says nothing of training
        told.free = 900
        adaptive.step()


def test_the_model_is_as_before_afterwards_also_on_errors():
    net = model()

    def failing():
        with AdaptiveCheckpoint(net, ["0", "2"], reader=Told(1)) as adaptive:
            stepped(adaptive, 2)
            assert isinstance(net[0].forward, CheckpointedForward)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert not any({"forward", "__getstate__"} & set(vars(part)) for part in net.modules())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_of_the_model_know_nothing_of_it(copied):
    net = model()
    read = []
    with AdaptiveCheckpoint(net, ["", "0"], reader=lambda: read.append(1) or FreeMemory(1, 1000)) as adaptive:
        stepped(adaptive, 2)
        other = copied(net)
        read.clear()
        other(torch.randn(2, 4)).sum().backward()
        assert not read
        for one, its in zip(net.modules(), other.modules(), strict=True):
            assert set(vars(one)) - set(vars(its)) <= {"forward", "__getstate__"}
            assert not {"forward", "__getstate__"} & set(vars(its))
        net(torch.randn(2, 4))
        assert read


@pytest.mark.slow
def test_known_bytes_switch_on_as_many_as_needed_and_keep_from_flickering(works):
    work = works.transformer()
    plan = plan_checkpoints(work, strategy="adaptive", policies=["full"], budget_s=1.0)
    saved = {cost.module: cost.saved_bytes for cost in plan.costs}
    total = 10 * sum(saved.values())
    free = [int(0.1 * total) - saved[plan.order[0]] - 1]
    net = work.parts.model
    with AdaptiveCheckpoint(net, plan, reader=lambda: FreeMemory(free[0], total), patience=1) as adaptive:
        assert stepped(adaptive) == plan.order[:2]
        free[0] = int(0.26 * total)
        assert stepped(adaptive) == plan.order[:1]
    tight = FreeMemory(260, 1000)
    with AdaptiveCheckpoint(net, plan, reader=lambda: FreeMemory(1, total), patience=1) as adaptive:
        stepped(adaptive)
        active = adaptive.active
        adaptive._reader = lambda: tight  # every block is larger than all that is free
        assert stepped(adaptive, 5) == active


@pytest.mark.parametrize(
    ("blocks", "settings", "message"),
    [
        ([], {}, "names no blocks"),
        (["9"], {}, "no such module"),
        (["0"], {"tight": 0.5, "roomy": 0.4}, "0 < tight < roomy < 1"),
        (["0"], {"patience": 0}, "patience: got 0"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(blocks, settings, message):
    with pytest.raises(InputError, match=message):
        AdaptiveCheckpoint(model(), blocks, **settings)
