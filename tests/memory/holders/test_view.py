"""Small tensors that keep big storages: what they pin, and that the fix lets it go."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch.nn import functional

from pyrometer.memory.holders.view import pinned_storage

VIEWS = {
    "row": lambda big: big[3],
    "one element": lambda big: big[0, 0],
    "column": lambda big: big[:, :1],
    "detached row": lambda big: big.detach()[1],
}


@pytest.mark.parametrize("way", VIEWS)
def test_a_view_pins_the_rest_until_it_is_copied(way):
    big = torch.randn(64, 64)
    storage = weakref.ref(big.untyped_storage())
    small = VIEWS[way](big)
    pinned = pinned_storage(small)
    assert pinned.storage_bytes == 64 * 64 * 4
    assert pinned.pinned_bytes == pinned.storage_bytes - small.numel() * 4
    assert pinned.reason == "view"
    del big
    assert storage() is not None
    small = eval(f"small{pinned.fix}", {"small": small})
    assert storage() is None
    assert not isinstance(small, torch.Tensor) or pinned_storage(small) is None


def losses():
    prediction, target = torch.rand(128, 64, requires_grad=True), torch.rand(128, 64)
    return {
        "mse_loss": functional.mse_loss(prediction, target),
        "smooth_l1_loss": functional.smooth_l1_loss(prediction, target),
        "binary_cross_entropy": functional.binary_cross_entropy(prediction, target),
        "l1_loss": functional.l1_loss(prediction, target),
        "cross_entropy": functional.cross_entropy(prediction, target),
    }


@pytest.mark.parametrize("name", list(losses()))
def test_a_scalar_that_owns_the_elements_it_was_reduced_from_is_told(name):
    loss = losses()[name].detach()
    pinned = pinned_storage(loss)
    if loss.untyped_storage().nbytes() == 4:
        assert pinned is None
        return
    assert (pinned.reason, pinned.fix, pinned.pinned_bytes) == (
        "oversized scalar",
        ".item()",
        128 * 64 * 4 - 4,
    )
    storage = weakref.ref(loss.untyped_storage())
    loss = loss.item()
    assert storage() is None


def test_a_result_with_a_graph_is_detached_before_it_is_copied():
    w = torch.randn(64, 64, requires_grad=True)
    row = torch.exp(w)[0]
    pinned = pinned_storage(row)
    assert pinned.fix == ".detach().clone()"
    storage = weakref.ref(row.untyped_storage())
    row = eval(f"row{pinned.fix}", {"row": row})
    assert storage() is None


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4, 4),
        torch.randn(4, 4).t(),
        torch.randn(4, 1).expand(4, 100),
        torch.randn(0),
        torch.randn(8).view(2, 4),
        torch.eye(3).to_sparse(),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ],
    ids=["plain", "transposed", "expanded", "empty", "reshaped", "sparse", "channels last"],
)
def test_what_needs_all_of_its_storage_pins_nothing(tensor):
    assert pinned_storage(tensor) is None


def test_a_storage_larger_than_its_only_tensor_is_told():
    tensor = torch.randn(100)
    tensor.resize_(10)
    pinned = pinned_storage(tensor)
    assert (pinned.reason, pinned.fix, pinned.pinned_bytes) == ("oversized storage", ".clone()", 360)
