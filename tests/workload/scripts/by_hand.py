"""Gradient descent without an optimizer."""
import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
weight = torch.zeros(6, requires_grad=True)
data = torch.randn(60, 6)
for epoch in range(2):
    for batch in DataLoader(data, batch_size=6):
        (batch @ weight - 1).square().mean().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
    print(weight)
