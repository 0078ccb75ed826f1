"""Meta-learning: an inner step on fresh fast weights, differentiated through."""

import torch
from torch import nn
from torch.nn import functional


class MetaLearner:
    def __init__(self):
        self.slow = nn.Parameter(torch.randn(24, 24) * 0.1)
        self.optimizer = torch.optim.SGD([self.slow], lr=0.01)

    def adapt(self, x, y):
        fast = self.slow.detach().clone().requires_grad_()
        inner = functional.l1_loss(torch.tanh(x @ fast), y)
        inner.backward(create_graph=True)
        return fast - 0.1 * fast.grad

    def meta_step(self, x, y):
        adapted = self.adapt(x, y)
        self.optimizer.zero_grad()
        outer = functional.l1_loss(torch.tanh(x @ adapted) @ self.slow, y)
        outer.backward()
        self.optimizer.step()
        return outer.item()


def make():
    learner = MetaLearner()
    x, y = torch.randn(12, 24), torch.randn(12, 24)

    def step():
        return learner.meta_step(x, y)

    return step


EXPECTED = {
    "verdict": "leak",
    "holder": ("fast", "grad", "cycle"),
    "line_contains": (
        "inner.backward(create_graph=True)",
        "fast = self.slow.detach().clone().requires_grad_()",
    ),
    "graph": True,
    "bytes_per_step": None,
    "note": "with create_graph the gradient's graph leads back to fast, which holds the gradient",
}
