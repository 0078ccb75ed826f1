"""Which computations run in low precision, and whole numbers that do not survive a cast."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.numerics.watch import watch_numerics


class OwnNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class CarefulNorm(nn.Module):
    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def kinds(work):
    return {(use.kind, use.dtype) for use in watch_numerics(work, steps=2).precision}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_norm_written_by_hand_in_low_precision_is_seen(dtype, line_of):
    work = pm.Inference(nn.Sequential(nn.Linear(8, 8), OwnNorm()).to(dtype), torch.randn(4, 8, dtype=dtype))
    (use,) = watch_numerics(work, steps=2).precision
    assert (use.kind, use.dtype, use.calls) == ("hand-written normalisation", str(dtype)[6:], 1)
    assert use.where.line == line_of(OwnNorm.forward, "rsqrt")


def test_one_in_float32_is_not():
    model = nn.Sequential(nn.Linear(8, 8), CarefulNorm()).bfloat16()
    assert kinds(pm.Inference(model, torch.randn(4, 8, dtype=torch.bfloat16))) == set()


def test_a_loss_in_bfloat16_is_seen_and_one_in_float32_is_not(training):
    class InHalf(nn.Module):
        def __init__(self, *, wide: bool) -> None:
            super().__init__()
            self.layer, self.wide = nn.Linear(8, 4).bfloat16(), wide

        def forward(self, x):
            output = self.layer(x.bfloat16())
            return output.float() if self.wide else output

    assert ("loss", "bfloat16") in kinds(training(InHalf(wide=False)))
    assert kinds(training(InHalf(wide=True))) == set()


def test_running_statistics_in_low_precision_are_seen_while_training(training):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)).bfloat16()

        def forward(self, x):
            return self.body(x.bfloat16()).float()

    assert ("statistics", "bfloat16") in kinds(training(Net()))
    assert ("statistics", "bfloat16") not in kinds(pm.Inference(Net(), torch.randn(4, 8)))


def test_casts_of_indices_count_what_does_not_survive(line_of):
    class Positions(nn.Module):
        def forward(self, ids):
            return ids.to(torch.bfloat16) / 2

    ids = torch.arange(1000)[None]
    (cast,) = watch_numerics(pm.Inference(Positions(), ids), steps=1).casts
    survived = (torch.arange(1000).bfloat16().long() == torch.arange(1000)).sum()
    assert cast.num_changed == 1000 - survived > 0
    assert (cast.name, cast.from_dtype, cast.to_dtype, cast.largest) == ("0", "int64", "bfloat16", 999)
    assert cast.where.line == line_of(Positions.forward, "bfloat16")


def test_images_of_bytes_survive():
    class Normalise(nn.Module):
        def forward(self, image):
            return image.half() / 255

    image = torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8)
    (cast,) = watch_numerics(pm.Inference(Normalise(), image), steps=1).casts
    assert cast.num_changed == 0


def test_a_model_in_bfloat16_is_compared_with_itself_in_float32():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4)).bfloat16()
    shift = watch_numerics(pm.Inference(model, torch.randn(32, 8, dtype=torch.bfloat16)), steps=1).shift
    assert shift.changed == "bfloat16"
    assert shift.within_tolerance
    assert 0 < shift.max_rel < shift.tolerance
    work = pm.Inference(nn.Linear(8, 4), torch.randn(4, 8))
    assert watch_numerics(work, steps=1).shift is None
    assert watch_numerics(work.variant(autocast="bfloat16"), steps=1).shift.changed == "bfloat16"


def test_saturated_and_dead_activations_are_counted():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            nn.init.eye_(self.layer.weight)
            with torch.no_grad():
                self.layer.bias.copy_(torch.tensor([-100.0, 100.0, 100.0, 100.0]))

        def forward(self, x):
            return torch.sigmoid(torch.relu(self.layer(x)))

    relu, sigmoid = watch_numerics(pm.Inference(Net(), torch.randn(64, 4)), steps=3).activations
    assert (relu.function, relu.dead, relu.zeros) == ("relu", 0.25, 0.25)
    assert (sigmoid.function, sigmoid.saturated) == ("sigmoid", 0.75)
