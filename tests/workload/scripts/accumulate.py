import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for number, batch in enumerate(DataLoader(torch.randn(120, 6), batch_size=6)):
        (model(batch).square().mean() / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
print(model.weight)
