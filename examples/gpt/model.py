"""A small GPT: pre-norm blocks, fused causal attention, tied embedding. B batch, T time, D width, H heads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Sizes of a GPT; these defaults make 1.3 million parameters."""

    vocabulary: int = 256
    context: int = 128
    width: int = 160
    heads: int = 5
    layers: int = 4
    dropout: float = 0.0


class Attention(nn.Module):
    """Causal self-attention over all heads at once."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, D/H)
            for part in self.qkv(x_BTD).chunk(3, dim=-1)
        )
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then a two-layer perceptron, each behind a norm and beside a residual."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm_mlp = nn.LayerNorm(config.width)
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.attention(self.norm_attention(x_BTD))
        return x_BTD + self.mlp(self.norm_mlp(x_BTD))


class GPT(nn.Module):
    """Maps tokens (B, T) to logits of the next token (B, T, vocabulary)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*[Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(_initialise)
        self.head.weight = self.token.weight

    def forward(self, tokens_BT: Tensor) -> Tensor:
        positions_T = torch.arange(tokens_BT.shape[1], device=tokens_BT.device)
        x_BTD = self.token(tokens_BT) + self.position(positions_T)
        return self.head(self.norm(self.blocks(x_BTD)))

    @torch.no_grad()
    def generate(self, tokens_BT: Tensor, num_tokens: int, temperature: float = 0.8) -> Tensor:
        """Continue `tokens_BT` by sampling; the window slides when the context is full."""
        for _ in range(num_tokens):
            logits_BV = self(tokens_BT[:, -self.config.context :])[:, -1] / temperature
            following = torch.multinomial(logits_BV.softmax(dim=-1), num_samples=1)
            tokens_BT = torch.cat([tokens_BT, following], dim=1)
        return tokens_BT


def _initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def adamw(model: nn.Module, learning_rate: float, weight_decay: float = 0.1) -> torch.optim.AdamW:
    """AdamW that decays matrices and leaves biases and norms alone."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95))


def next_token_loss(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
    """Mean cross-entropy of the next token, in nats."""
    return F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten())
