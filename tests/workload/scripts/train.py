"""A classifier as people write them: epochs, a DataLoader, validation, a checkpoint."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(120, 16), torch.randint(0, 3, (120,)))
    train_loader = DataLoader(data, batch_size=20, shuffle=True, num_workers=args.workers)
    test_loader = DataLoader(TensorDataset(*data[:40]), batch_size=20)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(args.epochs):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            print(f"{epoch} {loss.item():.6f}")
        print("right:", evaluate(model, test_loader))
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
    torch.save(model, "model.pt")
