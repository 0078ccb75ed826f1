"""Small training steps of different kinds, shared by the tests of this room."""

from __future__ import annotations

import random
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import pyrometer as pm
from pyrometer.tuning.checkpointing.costs import written_inside


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, factor, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, factor * width), nn.GELU(), nn.Linear(factor * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


class Transformer(nn.Module):
    """Blocks of uneven width."""

    def __init__(self, factors=(1, 8, 2, 4), width=32):
        super().__init__()
        self.embed = nn.Embedding(64, width)
        self.blocks = nn.ModuleList([Block(width, factor) for factor in factors])
        self.head = nn.Linear(width, 64)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Conv(nn.Sequential):
    def __init__(self, inner, outer, stride=1):
        super().__init__(
            nn.Conv2d(inner, outer, 3, padding=1, stride=stride), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)
        )


class UNet(nn.Module):
    """Skips: what a block makes is also used far later."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = Conv(3, 8), Conv(8, 16, stride=2)
        self.middle = Conv(16, 16)
        self.up = Conv(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.middle(self.down2(one))
        return self.head(self.up(torch.cat([one, functional.interpolate(two, scale_factor=2)], 1)))


def training(model, loss, batch, **settings):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return pm.Training(model, loss, optimizer, [batch], **settings)


def transformer(**settings):
    torch.manual_seed(0)
    tokens = torch.randint(0, 64, (8, 32))
    return training(Transformer(), per_token, (tokens, tokens), **settings)


def per_token(output, target):
    return functional.cross_entropy(output.flatten(0, 1), target.flatten())


def cnn(**settings):
    torch.manual_seed(0)
    model = nn.Sequential(
        Conv(3, 8), Conv(8, 16, 2), Conv(16, 16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)
    )
    batch = torch.randn(4, 3, 32, 32), torch.randint(0, 4, (4,))
    return training(model, nn.CrossEntropyLoss(), batch, **settings)


def unet(**settings):
    torch.manual_seed(0)
    batch = torch.randn(4, 3, 32, 32), torch.randint(0, 2, (4, 32, 32))
    return training(UNet(), functional.cross_entropy, batch, **settings)


def mlp(**settings):
    torch.manual_seed(0)
    widths = [32, 256, 16, 256, 512, 32]
    layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(widths)]
    x = torch.randn(256, 32)
    return training(nn.Sequential(*layers), nn.L1Loss(), (x, x), **settings)


def random_choices(model, count, seed=0):
    """Sets of options that go together."""
    rng = random.Random(seed)
    for _ in range(count):
        chosen = []
        order = rng.sample(range(len(model.options)), len(model.options))
        for option in order[: rng.randint(1, len(order))]:
            if model.allowed([*chosen, option]):
                chosen.append(option)
        yield chosen


def written(trace, modules):
    return {module: written_inside(trace, module) for module in modules}


@pytest.fixture
def works():
    return SimpleNamespace(transformer=transformer, cnn=cnn, unet=unet, mlp=mlp, training=training)


@pytest.fixture
def tools():
    return SimpleNamespace(random_choices=random_choices, written=written, Block=Block, Conv=Conv)
