"""Each lever: where it is applied, that its probe sees that, that the results are those of its class, and where it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.bench.matrix.numerics import numeric_error
from pyrometer.tuning.levers.applying import apply_levers, not_applied, subject_of
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.registry import find_lever, levers
from pyrometer.tuning.trials.gate import Limits


def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Conv2d(8, 4, 3))
    nn.init.uniform_(model[1].running_mean)
    nn.init.uniform_(model[1].running_var, 0.5, 2.0)
    return pm.Inference(model, torch.randn(2, 3, 12, 12))


def linear_norm():
    model = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
    nn.init.uniform_(model[1].running_var, 0.5, 2.0)
    return pm.Inference(model, torch.randn(8, 16))


def shared_norm():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)

        def forward(self, x):
            return self.norm(self.norm(self.layer(x)))

    return pm.Inference(Twice(), torch.randn(4, 8))


def mlp():
    return pm.Inference(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(8, 16))


def decayed():
    work = mlp()
    with torch.no_grad():
        work.model[0].weight[0] = 1e-40
    return work


def wide():
    torch.manual_seed(0)
    return pm.Inference(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).eval(), torch.randn(16, 64)
    )


def with_spare_neurons():
    work = wide()
    with torch.no_grad():
        work.model[0].weight[::4] *= 1e-3
        work.model[0].bias[::4] = 0.0
    return work


def training(**options):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,))) for _ in range(3)]
    return pm.Training(model, nn.functional.cross_entropy, optimizer, batches)


def without_choice():
    model = nn.Linear(16, 4)
    batches = [(torch.randn(8, 16), torch.randint(0, 4, (8,)))]
    return pm.Training(model, nn.functional.cross_entropy, torch.optim.Rprop(model.parameters()), batches)


class Applied(NamedTuple):
    """A lever on a program that it fits."""

    lever: str
    program: Callable[[], pm.Workload]
    parameters: dict = {}
    marks: tuple = ()


SLOW = (pytest.mark.slow,)
FITS = [
    Applied("drop_dropout", convolutions),
    Applied("fold_batchnorm", convolutions),
    Applied("fold_batchnorm", linear_norm),
    Applied("channels_last", convolutions),
    Applied("autocast_bf16", mlp),
    Applied("autocast_bf16", training),
    Applied("cast_bf16", mlp),
    Applied("threads", mlp, {"num": 1}),
    Applied("flush_denormals", decayed),
    Applied("fused_optimizer", training),
    Applied("compile", mlp, {"mode": "default"}, SLOW),
    Applied("compile", convolutions, {"mode": "default", "freezing": True}, SLOW),
    Applied("int8_dynamic", wide),
    Applied("int8_weight_only", wide),
    Applied("prune_channels", with_spare_neurons, {"share": 0.25}),
]
REFUSED = [
    ("drop_dropout", mlp, "no module for dropout"),
    ("fold_batchnorm", mlp, "no batch norm"),
    ("fold_batchnorm", shared_norm, "no batch norm reads"),
    ("channels_last", mlp, "no 2-d convolution"),
    ("autocast_fp16", mlp, "on a CPU bfloat16"),
    (
        "cast_bf16",
        lambda: pm.Inference(nn.Linear(4, 4).bfloat16(), torch.randn(2, 4).bfloat16()),
        "not in float32",
    ),
    ("autocast_bf16", lambda: pm.Inference(nn.ReLU(), torch.randn(2, 4)), "no floating-point parameters"),
    ("flush_denormals", mlp, "neither parameters nor inputs"),
    ("fused_optimizer", lambda: training(fused=True), "fused already"),
    ("fused_optimizer", without_choice, "has no fused kernel"),
    ("int8_dynamic", mlp, "no linear layer in floating point has at least 64"),
    ("int8_weight_only", convolutions, "no linear layer in floating point has at least 64"),
    ("int8_static", lambda: pm.Inference(nn.ReLU(), torch.randn(2, 4)), "neither linear layers nor"),
    ("int8_static", lambda: pm.Inference(nn.Linear(4, 4).bfloat16(), torch.randn(2, 4)), "not in float32"),
    ("prune_channels", lambda: pm.Inference(nn.Linear(4, 4), torch.randn(2, 4)), "read by one other layer"),
    ("compile", lambda: pm.Inference(torch.compile(nn.Linear(4, 4)), torch.randn(2, 4)), "comes compiled"),
]


@pytest.mark.parametrize(
    "applied", [pytest.param(a, marks=a.marks, id=f"{a.lever}-{a.program.__name__}") for a in FITS]
)
def test_it_is_applied_seen_to_be_and_computes_the_same(applied, tmp_path):
    work, lever = applied.program(), find_lever(applied.lever)
    choice = LeverChoice(lever=applied.lever, parameters=applied.parameters)
    subject = subject_of(work, tmp_path)
    reference = outputs(subject.finished())
    assert lever.refuses(subject) is None
    apply_levers(subject, (choice,))
    with torch.inference_mode(False):
        changed, seen = outputs_and_probe(subject, choice)
    assert seen is None
    error = numeric_error(changed, reference, 0.0)
    assert error.mismatch is None
    assert error.max_rel <= Limits().largest_error(lever.fix_class)


def outputs(work):
    with work.open() as session:
        session.activate()
        torch.manual_seed(0)
        return session.step(session.prepare())


def outputs_and_probe(subject, choice):
    work = subject.finished()
    try:
        with work.open() as session:
            session.activate()
            torch.manual_seed(0)
            output = session.step(session.prepare())
            return output, not_applied(subject, (choice,))
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize(
    "applied", [a for a in FITS if not a.marks and a.lever != "threads"], ids=lambda a: a.lever
)
def test_the_probe_sees_that_a_lever_was_not_applied(applied, tmp_path):
    subject = subject_of(applied.program(), tmp_path)
    lever = find_lever(applied.lever)
    if applied.lever == "autocast_bf16" and not subject.is_training:
        pytest.skip(
            "a context leaves no trace outside of calls; its probe asks whether this machine honours it"
        )
    assert lever.not_applied(subject, applied.parameters) is not None


@pytest.mark.parametrize(
    ("name", "program", "said"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_it_refuses_where_it_cannot_help(name, program, said, tmp_path):
    assert said in (find_lever(name).refuses(subject_of(program(), tmp_path)) or "")


def test_every_lever_is_tested():
    assert set(levers()) == {applied.lever for applied in FITS} | {name for name, _, _ in REFUSED}
