"""Whatever small network, loss, optimizer and batch: predicted is measured."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.recording.steps import record_steps

LAYERS = {
    "linear": lambda w: nn.Linear(w, w),
    "relu": lambda _: nn.ReLU(),
    "relu in place": lambda _: nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True)),
    "gelu": lambda _: nn.GELU(),
    "dropout": lambda _: nn.Dropout(0.3),
    "norm": nn.LayerNorm,
    "batch norm": nn.BatchNorm1d,
    "softmax": lambda _: nn.Softmax(-1),
    "bottleneck": lambda w: nn.Sequential(nn.Linear(w, 3), nn.Tanh(), nn.Linear(3, w)),
    "prelu": lambda _: nn.PReLU(),
}
LOSSES = (functional.mse_loss, functional.smooth_l1_loss, functional.l1_loss, functional.huber_loss)
OPTIMIZERS = ("SGD", "SGD momentum", "AdamW", "Adam fused", "RMSprop foreach", "Adagrad")
WIDTH = 8


@st.composite
def programs(draw):
    names = draw(st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=6))
    return names, draw(st.sampled_from(LOSSES)), draw(st.sampled_from(OPTIMIZERS)), draw(st.integers(2, 40))


@pytest.mark.slow
@settings(max_examples=12)
@given(program=programs(), batch=st.integers(2, 100))
def test_predicted_is_measured(program, batch):
    assert_predicted(program, batch)


@pytest.mark.slow
@given(program=programs(), batch=st.integers(2, 100))
def test_predicted_is_measured_of_many(program, batch):
    assert_predicted(program, batch)


def assert_predicted(program, batch):
    names, loss, optimizer, other = program
    memory = predict_memory(training(names, loss, other), batch=batch, optimizer=optimizer)
    work = training(names, loss, batch, optimizer)
    assert memory.peak_bytes == record_steps(work).peak_bytes


def training(names, loss, batch, optimizer="SGD"):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), *(LAYERS[name](WIDTH) for name in names))
    kind, *words = optimizer.split()
    options = {"momentum": {"momentum": 0.9}, "fused": {"fused": True}, "foreach": {"foreach": True}}
    chosen = {key: value for word in words for key, value in options[word].items()}
    made = getattr(torch.optim, kind)(model.parameters(), lr=1e-3, **chosen)
    return pm.Training(model, loss, made, [(torch.randn(batch, WIDTH), torch.randn(batch, WIDTH))])
