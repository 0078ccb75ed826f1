"""A small decoder language model with linear position biases, scoring whole sequences."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm


def alibi_bias(heads: int, length: int) -> Tensor:
    """(heads, length, length): the slope of each head times the distance, and minus infinity ahead."""
    slopes = [2 ** (-8 * (head + 1) / heads) for head in range(heads)]
    bias = torch.full((heads, length, length), float("-inf"))
    for head, slope in enumerate(slopes):
        for query in range(length):
            distance = torch.arange(query, -1, -1)
            bias[head, query, : query + 1] = -slope * distance
    return bias


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def bias(self, length: int) -> Tensor:
        return alibi_bias(self.heads, length)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        qkv = self.qkv(hidden).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*qkv, attn_mask=self.bias(length))
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class BufferedAttention(Attention):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__(width, heads, length)
        self.register_buffer("table", alibi_bias(heads, length), persistent=False)

    def bias(self, length: int) -> Tensor:
        return self.table[:, :length, :length]


class Block(nn.Module):
    def __init__(self, width: int, attention: Attention) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = attention
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.attention(self.norms[0](hidden))
        return hidden + self.mlp(self.norms[1](hidden))


class Decoder(nn.Module):
    def __init__(
        self, attention: type[Attention], vocabulary=2000, width=128, heads=4, depth=3, length=128
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*(Block(width, attention(width, heads, length)) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.norm(self.blocks(self.token(tokens)))
        logits = F.linear(hidden, self.token.weight)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")


def scorer(attention: type[Attention]) -> pm.Inference:
    torch.manual_seed(0)
    model = Decoder(attention)
    return pm.Inference(model, torch.randint(2000, (4, 128)), unit="sequences")


def slow() -> pm.Inference:
    return scorer(Attention)


def fast() -> pm.Inference:
    return scorer(BufferedAttention)
