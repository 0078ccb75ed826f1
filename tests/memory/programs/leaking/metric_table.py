"""A table with one row per step, to become a DataFrame after the run."""

import torch
from torch import nn


class MetricTable:
    def __init__(self):
        self.columns = {"step": [], "loss": [], "grad_norm": [], "confidence": []}

    def add_row(self, **values):
        for name, column in self.columns.items():
            column.append(values[name])


def make():
    model = nn.Linear(50, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    table = MetricTable()
    x, y = torch.randn(64, 50), torch.randint(0, 5, (64,))

    def step():
        optimizer.zero_grad()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
        grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        confidence = logits.detach().softmax(dim=1).amax(dim=1)
        table.add_row(
            step=len(table.columns["step"]),
            loss=loss.detach(),
            grad_norm=grad_norm,
            confidence=confidence,
        )
        return loss.item()

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("columns",),
    "line_contains": (
        "column.append(values[name])",
        "confidence = logits.detach().softmax(dim=1).amax(dim=1)",
        "loss = nn.functional.cross_entropy(logits, y)",
        "grad_norm = nn.utils.clip_grad_norm_",
    ),
    "graph": False,
    "bytes_per_step": 264,
    "note": "64 confidences and two scalars as tensors in each row",
}
