"""How noisy are the gradients? Keep them and compare neighbours."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    grads = []

    def step():
        x, y = torch.randn(16, 20), torch.randint(0, 2, (16,))
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        grads.append([p.grad for p in model.parameters()])
        optimizer.step()
        if len(grads) < 2:
            return 1.0
        before, now = grads[-2:]
        return torch.cosine_similarity(before[0].flatten(), now[0].flatten(), dim=0).item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("grads",),
    "line_contains": ("grads.append([p.grad for p in model.parameters()])", "loss.backward()"),
    "graph": False,
    "bytes_per_step": 3688,
    "note": "set_to_none lets go of the gradients, the list does not: 922 floats per step",
}
