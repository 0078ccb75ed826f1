"""Batch and sequence are found in the inputs, or said."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.memory.prediction.sizes import axes_of, named_tensors, require_axis, resized_shape, size_of

IDS = torch.zeros(4, 12, dtype=torch.int64)


def test_ids_masks_and_labels_share_their_axes():
    inputs = {
        "ids": IDS,
        "hidden": torch.zeros(4, 12, 8),
        "mask": torch.zeros(4, 1, 12, 12),
        "causal": torch.zeros(12, 12),
        "positions": torch.arange(12),
        "label": torch.zeros(4),
        "matrix": torch.zeros(3, 3),
    }
    assert axes_of(inputs) == {
        "ids": {0: "B", 1: "T"},
        "hidden": {0: "B", 1: "T"},
        "mask": {0: "B", 2: "T", 3: "T"},
        "causal": {0: "T", 1: "T"},
        "positions": {0: "T"},
        "label": {0: "B"},
    }


def test_images_and_features_have_no_sequence():
    for shape in ((4, 12), (4, 3, 24, 24)):
        with pytest.raises(InputError, match=r'dims=\{"x"'):
            require_axis({"x": torch.zeros(shape)}, axes_of({"x": torch.zeros(shape)}), "T")


def test_two_lengths_are_ambiguous_until_one_is_said():
    inputs = {"source": torch.zeros(4, 12, 8), "target": torch.zeros(4, 9, 8)}
    axes = axes_of(inputs)
    assert size_of(inputs, axes, "B") == 4
    with pytest.raises(InputError, match="one of 9, 12"):
        require_axis(inputs, axes, "T")
    said = axes_of(inputs, {"source": {0: "B", -2: "T"}, "target": {0: "B"}})
    assert size_of(inputs, said, "T") == 12


@pytest.mark.parametrize("dims", [{"y": {0: "B"}}, {"x": {3: "B"}}, {"x": {0: "N"}}])
def test_an_illegal_declaration_is_told(dims):
    with pytest.raises(InputError, match="dims: "):
        axes_of({"x": torch.zeros(2, 3)}, dims)


def test_tensors_are_found_in_nested_batches_and_objects():
    class Batch:
        def __init__(self):
            self.x, self.name = torch.zeros(2), "a"

    assert [name for name, _ in named_tensors([{"a": (torch.zeros(1), 3)}, Batch()])] == ["0.a.0", "1.x"]
    assert resized_shape(torch.Size([2, 5]), {0: "B"}, {"B": 7, "T": 3}) == [7, 5]


def test_a_sequence_that_comes_first_is_declared_by_the_parameter_of_the_model():
    work = pm.Inference(nn.GRU(8, 8), torch.randn(12, 4, 8))
    memory = predict_memory(work, batch=10, sequence=30, dims={"input": {0: "T", 1: "B"}})
    assert memory.ledger_bytes["inputs"] == 30 * 10 * 8 * 4


def test_channels_last_and_other_dtypes_are_kept_at_other_sizes():
    x = torch.zeros(2, 8, 6, 6, dtype=torch.float64).to(memory_format=torch.channels_last)
    work = pm.Inference(nn.ReLU(), x)
    assert predict_memory(work, batch=5).ledger_bytes["inputs"] == 5 * 8 * 36 * 8


def test_batches_in_objects_are_resized_too():
    class Batch:
        def __init__(self, x, y):
            self.x, self.y = x, y

    model = nn.Linear(8, 8)
    batch = Batch(torch.randn(4, 8), torch.randn(4, 8))
    work = pm.Training(
        model,
        lambda model, batch: (model(batch.x) - batch.y).abs().mean(),
        torch.optim.SGD(model.parameters()),
        [batch],
    )
    assert predict_memory(work, batch=64).ledger_bytes["inputs"] == 2 * 64 * 8 * 4
    assert batch.x.shape == (4, 8)
