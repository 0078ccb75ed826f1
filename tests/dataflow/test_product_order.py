"""Products of three matrices in the order that takes more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pyrometer.dataflow.analyses.product_order import product_orders
from pyrometer.dataflow.graph import FlowGraph

Flow = Callable[..., FlowGraph]

QUERY, KEY, VALUE = (torch.rand(2, 3, 64, 4) for _ in range(3))


def from_the_left() -> torch.Tensor:
    similarity = QUERY @ KEY.transpose(-2, -1)
    return (similarity @ VALUE) / similarity.sum(-1, keepdim=True)


def from_the_right() -> torch.Tensor:
    context = KEY.transpose(-2, -1) @ VALUE
    return (QUERY @ context) / (QUERY @ KEY.sum(-2).unsqueeze(-1))


def test_attention_without_a_softmax_is_found_and_the_other_order_is_the_same_and_left_alone(
    flow: Flow,
) -> None:
    (fact,) = product_orders(flow(from_the_left))
    assert (fact.shape[-2:], fact.where.function) == ([64, 64], "from_the_left")
    assert fact.where.line == from_the_left.__code__.co_firstlineno + 1
    assert fact.second.line == from_the_left.__code__.co_firstlineno + 2
    assert fact.left == pytest.approx(4 * 4 * 128 / (64 * 64 * 8))
    assert product_orders(flow(from_the_right)) == []
    torch.testing.assert_close(from_the_left(), from_the_right())


def test_in_training_and_from_the_other_side(flow: Flow) -> None:
    narrow, wide = torch.rand(64, 4, requires_grad=True), torch.rand(4, 64)

    def step(*, scaled: bool) -> torch.Tensor:
        product = narrow @ wide
        loss = (torch.ones(1, 64) @ (product / 2 if scaled else product)).sum()
        loss.backward()
        return loss.detach()

    for scaled in (False, True):
        (fact,) = product_orders(flow(lambda scaled=scaled: step(scaled=scaled)))
        assert fact.shape == [64, 64]


def test_a_product_that_something_else_needs_is_left_alone(flow: Flow) -> None:
    a, b = torch.rand(64, 4), torch.rand(4, 64)
    assert product_orders(flow(lambda: (a @ b).softmax(-1) @ a)) == []
    assert product_orders(flow(lambda: torch.stack([(a @ b).relu() @ a, (a @ b).tanh() @ a]))) == []

    def returned() -> tuple[torch.Tensor, torch.Tensor]:
        product = a @ b
        return product, product @ a

    assert product_orders(flow(returned)) == []
    assert product_orders(flow(lambda: (b @ a) @ b)) == []
