"""Failures inside of everything that is observed; some caught and printed, the last not."""
import sys
import traceback
import warnings

import torch
from torch.utils.data import DataLoader, Dataset


class Broken(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index == 2:
            raise OSError("cannot read sample 2")
        return torch.ones(4)


class Loud(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        for level in (1, 2, 3, 4, 5):
            warnings.warn(f"level {level}", stacklevel=level)
        traceback.print_stack()
        return self.inner(x)


class Forgot(torch.nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


def attempt(action):
    try:
        action()
    except Exception:
        traceback.print_exc()


model = Loud()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 4)).sum()
loss.backward()
attempt(loss.backward)
attempt(lambda: torch.autograd.grad(loss, model.inner.weight))
attempt(lambda: model(torch.ones(2, 5)))
attempt(lambda: Forgot()(torch.ones(1)))
attempt(lambda: list(DataLoader(Broken())))
attempt(lambda: optimizer.step(closure=lambda: 1 / 0))
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
if sys.argv[1:] == ["workers"]:
    list(DataLoader(Broken(), num_workers=1))
model(torch.ones(2, 5))
