"""Two losses share one forward pass, hence retain_graph."""

import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.left = nn.Linear(64, 1)
        self.right = nn.Linear(64, 4)

    def forward(self, x):
        shared = self.trunk(x)
        return self.left(shared), self.right(shared)


def make():
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, value, label = torch.randn(16, 32), torch.randn(16, 1), torch.randint(0, 4, (16,))
    loss_trace = []

    def step():
        optimizer.zero_grad()
        left, right = model(x)
        value_loss = (left - value).abs().mean()
        label_loss = nn.functional.cross_entropy(right, label)
        value_loss.backward(retain_graph=True)
        label_loss.backward(retain_graph=True)
        optimizer.step()
        loss_trace.append((value_loss, label_loss))
        return sum(loss.item() for loss in loss_trace[-1])

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("loss_trace",),
    "line_contains": ("loss_trace.append((value_loss, label_loss))", "left, right = model(x)"),
    "graph": True,
    "bytes_per_step": None,
    "note": "retain_graph keeps the buffers, the list keeps the graph",
}
