"""Small models with varying sizes, shared by the tests of this room: some bear padding, some do not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from compiler_fixtures import fresh_dynamo
from torch import nn
from torch.nn import functional

__all__ = ["fresh_dynamo"]


class Pointwise(nn.Module):
    """Nothing passes between positions."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 8)
        self.outer = nn.Linear(8, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


class Attention(nn.Module):
    """Attends over all positions; where a mask is true there are real ones."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, mask=None):
        h = self.project(x)
        ignored = None if mask is None else ~mask
        return self.attend(h, h, h, key_padding_mask=ignored, need_weights=False)[0]


class Unmasked(Attention):
    """The same, that cannot be told."""

    def forward(self, x):
        return super().forward(x)


class ConvNet(nn.Module):
    """Two convolutions and a batch norm in between."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.second(self.norm(self.first(x)))


class MaskedMean(nn.Module):
    """Pools what a mask of lengths says is real."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(4, 4)

    def forward(self, x, lengths=None):
        h = self.project(x)
        if lengths is None:
            return h.mean(1)
        real = torch.arange(x.shape[1])[None] < lengths[:, None]
        return (h * real[..., None]).sum(1) / lengths[:, None]


class Nested(nn.Module):
    """An output of several parts: one follows the size, one has one more, one is half, one does not follow at all."""

    def forward(self, x):
        end = torch.cat([x[:, :1], x], 1)
        return {"same": x * 2, "rest": (end, [x[:, ::2], x[:, 0]]), "name": "nested"}


class Broken(nn.Module):
    """A graph break, and a function behind it with a graph of its own."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def behind(self, x):
        y = self.layer(x)
        torch._dynamo.graph_break()
        return y * 2

    def forward(self, x):
        return torch.relu(self.behind(x))


class Recurrent(nn.Module):
    """Its last state is that of the last position."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        h = torch.relu(x)
        torch._dynamo.graph_break()
        return self.layer(h)


class Dropping(nn.Module):
    """Dropout, as a module or as a function."""

    def __init__(self, *, as_module):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5) if as_module else None

    def forward(self, x):
        h = self.layer(x)
        return self.drop(h) if self.drop is not None else functional.dropout(h, 0.5, self.training)


@pytest.fixture
def models():
    """The classes above, by name; the random state is fixed."""
    torch.manual_seed(0)
    kinds = (Pointwise, Attention, Unmasked, ConvNet, MaskedMean, Nested, Broken, Recurrent, Dropping)
    return SimpleNamespace(**{kind.__name__: kind for kind in kinds})


@pytest.fixture
def lengths():
    """A sample in which the second dimension of `x` varies."""
    return lambda sizes, rows=2, width=4: [{"x": (rows, size, width)} for size in sizes]
