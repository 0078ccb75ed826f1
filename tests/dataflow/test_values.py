"""What the values themselves tell: zeros, padding, rows of tables."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from pyrometer.dataflow.analyses.constant_tails import constant_tails
from pyrometer.dataflow.analyses.lookups import lookups
from pyrometer.dataflow.analyses.mostly_zero import mostly_zero
from pyrometer.dataflow.graph import FlowGraph

Flow = Callable[..., FlowGraph]

EDGES = torch.randint(0, 300, (2, 600), generator=torch.Generator().manual_seed(1))
ADJACENCY = torch.zeros(300, 300)
ADJACENCY[EDGES[0], EDGES[1]] = 0.5
FEATURES, TABLE = torch.rand(300, 5), nn.Parameter(torch.rand(200, 5))
CODES = torch.arange(300) % 200


def test_a_sparse_graph_as_a_dense_matrix_is_found(flow: Flow) -> None:
    (fact,) = mostly_zero(flow(lambda: ADJACENCY @ FEATURES, steps=2))
    assert fact.shape == [300, 300]
    assert fact.zero_share > 0.95
    assert not fact.one_hot


def test_a_matrix_that_is_filled_element_by_element_is_found(flow: Flow) -> None:
    def step() -> torch.Tensor:
        matrix = torch.zeros(300, 300)
        for i in range(1_200):
            matrix[i % 300, i // 4] = 1.0
        return matrix @ FEATURES

    (fact,) = mostly_zero(flow(step, steps=1))
    assert fact.seconds_per_step > 1_200


def test_one_hot_rows_count_with_what_makes_them(flow: Flow) -> None:
    (fact,) = mostly_zero(flow(lambda: functional.one_hot(CODES, 200).float() @ TABLE, steps=2))
    assert fact.one_hot
    assert fact.share > 0.6  # but for checks of the codes' range


@pytest.mark.parametrize(
    "step",
    [
        lambda: torch.rand(300, 300) @ FEATURES,
        lambda: (torch.rand(300, 300) - 0.5).relu() @ FEATURES,
        lambda: torch.tril(torch.ones(300, 300)) @ FEATURES,
        lambda: (torch.rand(300, 200) @ (TABLE @ FEATURES[:200].T - 99).relu()).sum() + 1,
    ],
    ids=["full", "half", "triangle", "activations"],
)
def test_matrices_that_are_not_empty_or_are_learnt_are_left_alone(
    flow: Flow, step: Callable[[], torch.Tensor]
) -> None:
    assert mostly_zero(flow(step, steps=2)) == []


QUERIES = torch.rand(2, 1, 200, 8)
APART = (torch.arange(200)[:, None] - torch.arange(200)).abs()


@pytest.mark.parametrize(
    "mask",
    [APART <= 8, torch.zeros(200, 200).masked_fill(APART > 8, float("-inf"))],
    ids=["truth values", "added"],
)
def test_attention_that_its_mask_leaves_little_of_is_found(flow: Flow, mask: torch.Tensor) -> None:
    step = lambda: functional.scaled_dot_product_attention(QUERIES, QUERIES, QUERIES, attn_mask=mask)  # noqa: E731
    (fact,) = mostly_zero(flow(step, steps=2))
    assert fact.masked
    assert fact.zero_share == pytest.approx(float((APART > 8).float().mean()), abs=0.02)


@pytest.mark.parametrize("mask", [APART >= 0, APART <= 60, None], ids=["all", "much", "none"])
def test_attention_to_a_good_part_is_left_alone(flow: Flow, mask: torch.Tensor | None) -> None:
    step = lambda: functional.scaled_dot_product_attention(QUERIES, QUERIES, QUERIES, attn_mask=mask)  # noqa: E731
    assert mostly_zero(flow(step, steps=2)) == []


class Reader:
    """Reads batches of sentences, padded to `length` or to the longest."""

    def __init__(self, length: int | None) -> None:
        self.table, self.length, self.turn = nn.Embedding(5_000, 4), length, 0

    def __call__(self) -> torch.Tensor:
        self.turn += 1
        rows = [torch.arange(1, 9 + (self.turn + row) % 5) for row in range(4)]
        ids = torch.zeros(4, self.length or max(map(len, rows)), dtype=torch.long)
        for row, words in enumerate(rows):
            ids[row, : len(words)] = words
        return self.table(ids).tanh().sum()  # type: ignore[no-any-return]


def test_padding_that_no_row_of_a_batch_needs_is_found_where_it_is_made(flow: Flow) -> None:
    (fact,) = constant_tails(flow(Reader(40), steps=4))
    assert fact.shape == [4, 40]
    assert 28 <= fact.fewest <= fact.tail <= 32
    assert fact.where.line == Reader.__call__.__code__.co_firstlineno + 3


class Tagger(nn.Module):
    """Reads one place after the other, and is busy with little else."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(50, 8), nn.GRU(8, 16, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.rnn(self.embed(tokens))[0].mean()  # type: ignore[no-any-return]


def test_what_recurrent_modules_take_place_by_place_is_of_the_padding(flow: Flow) -> None:
    model = Tagger()

    def step() -> torch.Tensor:
        tokens = torch.zeros(6, 64, dtype=torch.long)
        tokens[:, :12] = torch.randint(1, 50, (6, 12))
        model(tokens).backward()
        return tokens

    (fact,) = constant_tails(flow(step, steps=1))
    assert (fact.columns, fact.tail) == (64, 52)
    assert fact.share > 0.8


def test_batches_padded_to_their_longest_row_are_left_alone(flow: Flow) -> None:
    assert constant_tails(flow(Reader(None), steps=4)) == []


def test_rows_of_a_table_are_counted_once(flow: Flow) -> None:
    (fact,) = lookups(flow(Reader(40), steps=2))
    assert (fact.rows, fact.width) == (5_000, 4)
    assert fact.looked_up == pytest.approx(12, abs=2)


class Traces(nn.Module):
    """Reads sequences of features, the channels last or first."""

    def __init__(self, *, channels_first: bool) -> None:
        super().__init__()
        self.channels_first = channels_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.square().mean((1, 2))


@pytest.mark.parametrize("channels_first", [True, False])
def test_padded_sequences_of_features_are_found_either_way_round(flow: Flow, *, channels_first: bool) -> None:
    model, turn = Traces(channels_first=channels_first), iter(range(100))

    def step() -> torch.Tensor:
        x = torch.zeros(4, 50, 3)
        x[:, : 12 + next(turn) % 4] = 1 + torch.rand(4, 1, 3)
        return model(x.transpose(1, 2).contiguous() if channels_first else x)  # type: ignore[no-any-return]

    (fact,) = constant_tails(flow(step, steps=4))
    assert fact.columns == 50
    assert 34 < fact.tail < 39


def test_full_sequences_and_pictures_are_left_alone(flow: Flow) -> None:
    model = nn.Flatten()
    assert constant_tails(flow(lambda: model(torch.rand(4, 20, 3)), steps=4)) == []
    assert constant_tails(flow(lambda: model(torch.zeros(4, 3, 20, 20)), steps=4)) == []


class Indices(torch.Tensor):
    """A subclass of tensors, as libraries bring them."""


def test_tables_that_are_looked_up_by_other_kinds_of_tensors_are_left_alone(flow: Flow) -> None:
    rows = torch.arange(5).as_subclass(Indices)
    table = nn.Embedding(2_000, 4)
    assert lookups(flow(lambda: table(rows))) == []
