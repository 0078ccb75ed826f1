"""Four steps, in the third of which garbage is collected, and in no other."""

import gc

import torch

gc.disable()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(4):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    if number == 2:
        gc.collect()
    optimizer.step()
gc.enable()
