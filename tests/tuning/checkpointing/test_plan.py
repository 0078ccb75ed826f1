"""Whole plans: chosen, run, and what is said of them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.record import from_json, to_json
from pyrometer.tuning.checkpointing.applying import CheckpointedTraining
from pyrometer.tuning.checkpointing.candidates import blocks_of, choose_candidates
from pyrometer.tuning.checkpointing.observing import observe_step
from pyrometer.tuning.checkpointing.plan import plan_checkpoints
from pyrometer.tuning.checkpointing.record import CheckpointPlan
from pyrometer.tuning.checkpointing.verify import match_gradients, measured_peak

QUICK_S = 0.3


@pytest.mark.slow
def test_a_plan_fits_its_budget_when_it_is_run_and_trains_the_same(works):
    work = works.transformer()
    before = measured_peak(work)
    plan = plan_checkpoints(work, budget=int(0.75 * before), budget_s=QUICK_S)
    assert plan.fits
    assert plan.proven
    assert plan.baseline.peak_bytes == before
    assert plan.planned.peak_bytes <= 0.75 * before
    assert plan.planned.predicted_peak_bytes == pytest.approx(plan.planned.peak_bytes, rel=0.01)
    assert plan.equal.bitwise
    assert plan.sentence.startswith(f"checkpoint {len(plan.modules)} module")
    assert from_json(CheckpointPlan, to_json(plan)) == plan
    with plan.apply(work.parts.model):
        assert measured_peak(work) == plan.planned.peak_bytes
    assert measured_peak(work) == before


@pytest.mark.slow
def test_the_frontier_is_monotone_and_no_plan_is_worse_than_every_kth_block(works):
    plan = plan_checkpoints(works.transformer(), budget="1MiB", budget_s=QUICK_S)
    for earlier, later in pairwise(plan.frontier):
        assert later.peak_bytes < earlier.peak_bytes
        assert later.recompute_s >= earlier.recompute_s
    assert [point.k for point in plan.every_k] == [1, 2, 3, 4]
    for by_hand in plan.every_k:
        as_low = [point for point in plan.frontier if point.peak_bytes <= by_hand.peak_bytes]
        assert not as_low or by_hand.peak_bytes >= plan.frontier[-1].peak_bytes
    assert plan.frontier[-1].peak_bytes <= min(point.peak_bytes for point in plan.every_k)
    assert plan.every_k[0].modules == [f"blocks.{index}" for index in range(4)]
    assert plan.order[0] in plan.every_k[0].modules


@pytest.mark.slow
def test_a_budget_that_cannot_be_met_names_the_least_peak(works):
    plan = plan_checkpoints(works.transformer(), budget=1000, policies=["full"], budget_s=QUICK_S)
    assert plan.fits is False
    assert plan.planned.peak_bytes == pytest.approx(plan.least_peak_bytes, rel=0.02)  # workspace differs
    assert "cannot be met" in plan.sentence
    assert "the least peak within reach is" in plan.sentence


def test_a_budget_that_is_met_already_asks_for_nothing(works):
    work = works.mlp()
    plan = plan_checkpoints(work, budget="1GiB", budget_s=QUICK_S)
    assert (plan.modules, plan.fits, plan.verdict) == ([], True, None)
    assert plan.sentence.startswith("nothing to do")


@pytest.mark.exhaustive
def test_every_kth_block_is_a_strategy(works):
    work = works.transformer()
    plan = plan_checkpoints(work, strategy="every-k", budget=int(0.9 * measured_peak(work)), budget_s=QUICK_S)
    assert plan.fits
    assert plan.modules in [point.modules for point in plan.every_k]


@pytest.mark.exhaustive
def test_running_statistics_and_gradients_of_a_convolutional_plan_are_equal(works):
    plan = plan_checkpoints(works.unet(), budget_s=QUICK_S)
    assert plan.modules
    assert plan.equal.bitwise
    assert plan.planned.peak_bytes < plan.baseline.peak_bytes
    assert any("running statistics" in note for note in plan.notes)


@pytest.mark.exhaustive
def test_an_allowed_slowdown_of_nothing_plans_nothing(works):
    plan = plan_checkpoints(works.transformer(), budget="1MiB", max_slowdown=1.0, budget_s=QUICK_S)
    assert plan.modules == []
    assert plan.fits is False


def test_blocks_are_what_one_would_checkpoint_by_hand(works):
    for kind, expected in {
        "transformer": ["embed", "blocks.0", "blocks.1", "blocks.2", "blocks.3", "head"],
        "unet": ["down1", "down2", "middle", "up", "head"],
        "mlp": ["0", "1", "2", "3", "4"],
    }.items():
        work = getattr(works, kind)()
        assert blocks_of(work.parts.model, observe_step(work)) == expected, kind


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 64)
        self.outer = nn.Linear(64, 8)
        self.seen = []
        self.count = 0

    def forward(self, x):
        return self.outer(self.inner(x).tanh())


class InPlace(Body):
    def forward(self, x):
        return super().forward(x.mul_(0.5))


class Appending(Body):
    def forward(self, x):
        self.seen.append(0)
        return super().forward(x)


class Counting(Body):
    def forward(self, x):
        self.count += 1
        return super().forward(x)


class Drawing(Body):
    def forward(self, x):
        return super().forward(x) * random.random()


class Detached(Body):
    def forward(self, x):
        with torch.no_grad():
            return super().forward(x)


class Recursive(Body):
    def forward(self, x, depth=1):
        return self(x, depth - 1) if depth else super().forward(x)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (InPlace, "changes its input in place"),
        (Appending, "sets self.seen in its forward"),
        (Counting, "sets self.count in its forward"),
        (Drawing, "random generators of Python or NumPy"),
        (Detached, "keeps nothing for the backward pass"),
        (Recursive, "calls itself"),
    ],
)
def test_what_must_not_run_twice_is_excluded_and_said_why(works, kind, why):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.body = kind()

        def forward(self, x):
            y = self.first(x)
            return self.body(y * 2) + y.mean()

    x = torch.randn(16, 8)
    work = works.training(Model(), nn.L1Loss(), (x, x))
    candidates, excluded = choose_candidates(work.parts.model, observe_step(work), ["body"])
    assert candidates == []
    assert [module.module for module in excluded] == ["body"]
    assert why in excluded[0].why


@pytest.mark.slow
def test_a_module_whose_recomputation_differs_is_found_and_left_out(works):
    shared = {"factor": 1.0}  # state outside of the module, which recording cannot see

    class Drifting(Body):
        def forward(self, x):
            shared["factor"] += 1.0
            return torch.sigmoid(super().forward(x) * shared["factor"])

    model = nn.Sequential(Body(), Drifting(), Body())
    x = torch.randn(64, 8)
    work = works.training(model, nn.L1Loss(), (x, x))

    def reset(_module, _args):
        shared["factor"] = 1.0

    model.register_forward_pre_hook(reset)
    assert not match_gradients(work, CheckpointedTraining(work, {"1": "full"})).equal
    plan = plan_checkpoints(work, granularity=["0", "1", "2"], policies=["full"], budget_s=QUICK_S)
    assert "1" not in plan.modules
    assert plan.equal.equal
    assert any(module.module == "1" and "other gradients" in module.why for module in plan.excluded)


@pytest.mark.exhaustive
def test_a_module_whose_recomputation_fails_is_found_and_left_out(works):
    calls = []

    class Changing(Body):
        def forward(self, x):
            calls.append(1)
            y = super().forward(x)
            return y if len(calls) % 2 else y.tanh().exp()

    x = torch.randn(64, 8)
    work = works.training(nn.Sequential(Body(), Changing(), Body()), nn.L1Loss(), (x, x))
    plan = plan_checkpoints(work, granularity=["0", "1", "2"], policies=["full"], budget_s=QUICK_S)
    assert "1" not in plan.modules
    assert any(module.module == "1" for module in plan.excluded)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0}, "budget: got 0"),
        ({"budget": "much"}, "is not a size"),
        ({"max_slowdown": 0.5}, "max_slowdown: got 0.5"),
        ({"strategy": "best"}, "legal are optimal, every-k, adaptive"),
        ({"granularity": "fine"}, "legal are auto, blocks, all"),
        ({"granularity": ["nowhere"]}, "no such module"),
        ({"policies": ["half"]}, "policies: got 'half'"),
        ({"policies": []}, "policies: got none"),
        ({"budget_s": 0}, "budget_s: got 0"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(works, settings, message):
    with pytest.raises(InputError, match=message):
        plan_checkpoints(works.mlp(), **settings)


def test_the_larger_of_varying_batches_is_planned_for(works):
    model = nn.Sequential(
        *[nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 32)) for _ in range(3)]
    )
    batches = [(x, x) for x in (torch.randn(512, 32), torch.randn(64, 32))]
    work = pm.Training(model, nn.L1Loss(), torch.optim.SGD(model.parameters(), 0.1), batches)
    # What operators take for themselves is in the measured one alone.
    assert observe_step(work).peak_bytes == pytest.approx(measured_peak(work), rel=0.01)


def test_a_model_without_parts_cannot_be_planned(works):
    x = torch.randn(2, 4)
    with pytest.raises(InputError, match="no module can be computed again: the model has no parts"):
        plan_checkpoints(works.training(nn.Linear(4, 4), nn.L1Loss(), (x, x)))


def test_inference_is_refused():
    work = pm.Inference(nn.Linear(4, 4), torch.randn(2, 4))
    with pytest.raises(InputError, match="checkpointing is for training"):
        plan_checkpoints(work)


def test_a_plan_counts_what_operators_take_for_themselves_as_a_profile_does():
    """A convolution's scratch memory is more than the budget leaves, though its tensors fit."""
    model = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = (torch.randn(4, 8, 32, 32), torch.randn(4, 8, 32, 32))
    work = pm.Training(model, nn.functional.mse_loss, optimizer, [batch])
    profile = pm.profile_memory(work, predict=False)
    assert profile.ledger_bytes["workspace"] > 0
    assert measured_peak(work) == pytest.approx(profile.peak_bytes, rel=0.02)
