"""Greedy decoding of captions from image features with a small decoder-only transformer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pyrometer as pm

WIDTH, HEADS, DEPTH, VOCABULARY, NEW_TOKENS = 96, 4, 3, 1200, 20


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor, past: list[Tensor] | None = None) -> Tensor:
        batch, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)
        if past is not None:
            if past:
                k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
            past[:] = [k, v]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class Captioner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(192, WIDTH)
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)

    def next_word(self, hidden: Tensor) -> Tensor:
        return (self.norm(hidden[:, -1]) @ self.words.weight.T).argmax(-1, keepdim=True)


class PlainCaptioner(Captioner):
    def forward(self, image: Tensor) -> Tensor:
        words = image.new_empty((len(image), 0), dtype=torch.long)
        for _ in range(NEW_TOKENS):
            hidden = torch.cat([self.patches(image), self.words(words)], dim=1)
            for layer in self.layers:
                hidden = layer(hidden)
            words = torch.cat([words, self.next_word(hidden)], dim=1)
        return words


class IncrementalCaptioner(Captioner):
    def forward(self, image: Tensor) -> Tensor:
        memories: list[list[Tensor]] = [[] for _ in self.layers]
        hidden, words = self.patches(image), []
        for _ in range(NEW_TOKENS):
            for layer, past in zip(self.layers, memories, strict=True):
                hidden = layer(hidden, past)
            words.append(self.next_word(hidden))
            hidden = self.words(words[-1])
        return torch.cat(words, dim=1)


def endpoint(captioner: Captioner) -> pm.Inference:
    return pm.Inference(captioner, torch.randn(4, 64, 192), unit="captions")


def slow() -> pm.Inference:
    torch.manual_seed(0)
    return endpoint(PlainCaptioner())


def fast() -> pm.Inference:
    torch.manual_seed(0)
    return endpoint(IncrementalCaptioner())
