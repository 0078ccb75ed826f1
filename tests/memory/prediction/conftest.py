"""Small programs whose memory is predicted and measured."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm


class TokenModel(nn.Module):
    """A little language model with learned positions."""

    def __init__(self, width=32, layers=2, words=60, longest=256):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.zeros(longest, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.1)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        hidden = self.words(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


class Mlp(nn.Sequential):
    """Blocks of one width, that may be checkpointed by path."""

    def __init__(self, width=64, layers=3):
        super().__init__(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))


class Recurrent(nn.Module):
    """An LSTM, its outputs alone."""

    def __init__(self, width=24, hidden=16, layers=1, *, bidirectional=False):
        super().__init__()
        self.layer = nn.LSTM(width, hidden, layers, batch_first=True, bidirectional=bidirectional)

    def forward(self, x):
        return self.layer(x)[0]


class Stepping(nn.Module):
    """A Python loop over the sequence: at another length, other things are allocated."""

    def __init__(self, width=8):
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], x.shape[2])
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state


def language_loss(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


@pytest.fixture(scope="session")
def tokens():
    """A function that makes the training of a language model."""

    def make(batch=4, length=16, optimizer=torch.optim.AdamW, **options):
        torch.manual_seed(0)
        model = TokenModel()
        ids = torch.randint(0, 60, (batch, length))
        return pm.Training(
            model, language_loss, optimizer(model.parameters()), [(ids, ids.clone())], **options
        )

    return make


@pytest.fixture
def mlp():
    """A function that makes the training of a small net."""

    def make(
        batch=32, width=64, optimizer=torch.optim.AdamW, loss=functional.mse_loss, dtype=None, **options
    ):
        torch.manual_seed(0)
        model = Mlp(width).to(dtype)
        x, y = (torch.randn(batch, width, dtype=dtype) for _ in range(2))
        return pm.Training(model, loss, optimizer(model.parameters()), [(x, y)], **options)

    return make


@pytest.fixture
def recurrent():
    """A function that makes the training of an LSTM."""

    def make(batch=6, length=12, width=24, hidden=16, dtype=None, **options):
        torch.manual_seed(0)
        model = Recurrent(width, hidden, **options).to(dtype)
        x = torch.randn(batch, length, width, dtype=dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return pm.Training(
            model, lambda output, _: output.sum(), optimizer, [(x, torch.zeros(batch, dtype=dtype))]
        )

    return make


@pytest.fixture
def stepping():
    """The training of a model that loops over the sequence in Python."""
    model = Stepping()
    x = torch.randn(4, 12, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return pm.Training(model, functional.mse_loss, optimizer, [(x, torch.randn(4, 8))])
