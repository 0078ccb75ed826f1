"""Attention maps are kept so that they can be drawn."""

import torch
from torch import nn


class ExplainableBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.attention_maps = []

    def forward(self, x):
        output, weights = self.attention(x, x, x, need_weights=True, average_attn_weights=False)
        self.attention_maps.append(weights.detach())
        return x + output


def make():
    block = ExplainableBlock()
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-4)
    tokens = torch.randn(2, 20, 32)

    def step():
        optimizer.zero_grad()
        loss = block(tokens).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("attention_maps",),
    "line_contains": ("self.attention_maps.append(weights.detach())", "output, weights = self.attention"),
    "graph": False,
    "bytes_per_step": 12800,
    "note": "2 x 4 x 20 x 20 floats per forward pass",
}
