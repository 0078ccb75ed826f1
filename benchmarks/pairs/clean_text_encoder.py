"""Embeds passages for retrieval with a transformer encoder."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

WIDTH, HEADS, LENGTH = 192, 4, 128


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class PassageEncoder(nn.Module):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(8000, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(depth)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.norm(self.layers(self.words(tokens) + self.places[: tokens.shape[1]]))
        return F.normalize(hidden.mean(1), dim=-1)


def workload() -> pm.Inference:
    torch.manual_seed(0)
    return pm.Inference(PassageEncoder(), torch.randint(8000, (8, LENGTH)), unit="passages")
