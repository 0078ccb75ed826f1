"""Predicts per-residue contacts of peptides of many lengths with a compiled convolutional network."""

import time

import torch
from torch import nn


class ResidueNet(nn.Module):
    def __init__(self, letters=21, width=64, depth=4):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.contact = nn.Linear(width, 1)

    def forward(self, residues):
        x = self.embed(residues)
        for layer, norm in zip(self.layers, self.norms):
            x = x + torch.relu(layer(norm(x).transpose(1, 2))).transpose(1, 2)
        return self.contact(x).squeeze(-1)


def peptides(count=90, batch=8):
    """Batches of equal length within, of different lengths among themselves."""
    generator = torch.Generator().manual_seed(2)
    for step in range(count):
        length = 32 + 8 * (step * 5 % 6)
        residues = torch.randint(21, (batch, length), generator=generator)
        yield residues, (residues % 3 == 0).float()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch._dynamo.config.cache_size_limit = 64
    model = ResidueNet()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compiled(torch.zeros(8, 29, dtype=torch.long)).sum().backward()

    started = time.perf_counter()
    for residues, contacts in peptides():
        loss = nn.functional.binary_cross_entropy_with_logits(compiled(residues), contacts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"90 steps in {time.perf_counter() - started:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
