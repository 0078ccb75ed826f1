"""Train a small CNN to tell shapes apart.

The images are drawn on the fly: one faint shape on a dark noisy background, with some augmentation.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["circle", "square", "triangle", "cross", "ring", "stripes"]
SIZE = 32


def draw(name: str, x: np.ndarray, y: np.ndarray, r: float) -> np.ndarray:
    """Boolean image of a shape with radius r, in coordinates relative to its centre."""
    dist = np.sqrt(x**2 + y**2)
    box = np.maximum(np.abs(x), np.abs(y)) < r
    if name == "circle":
        return dist < r
    if name == "square":
        return box
    if name == "triangle":
        return (y > -r) & (y < r) & (np.abs(x) < (y + r) / 2)
    if name == "cross":
        return box & (np.minimum(np.abs(x), np.abs(y)) < r / 3)
    if name == "ring":
        return (dist < r) & (dist > 0.6 * r)
    return box & (np.floor(y / 2) % 2 == 0)


class ShapesDataset(Dataset):
    def __init__(self, n: int, train: bool = True, seed: int = 0) -> None:
        self.n = n
        self.train = train
        self.seed = seed

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        rng = np.random.default_rng(self.seed * 1_000_003 + i)
        label = i % len(CLASSES)

        # draw the shape somewhere near the middle
        cx, cy = rng.uniform(SIZE / 2 - 5, SIZE / 2 + 5, size=2)
        r = rng.uniform(5, 11)
        yy, xx = np.mgrid[0:SIZE, 0:SIZE]
        mask = draw(CLASSES[label], xx - cx, yy - cy, r)
        color = rng.uniform(0.1, 0.5, size=3)
        image = rng.normal(0.2, 0.2, size=(SIZE, SIZE, 3))
        image[mask] += color

        if self.train:
            image = self.augment(image)

        # HWC -> CHW, normalize
        image = (image - 0.3) / 0.4
        return torch.tensor(image.transpose(2, 0, 1).copy(), dtype=torch.float32), label

    def augment(self, image: np.ndarray) -> np.ndarray:
        if random.random() < 0.5:
            image = image[:, ::-1]
        image = image * random.uniform(0.7, 1.3) + random.uniform(-0.1, 0.1)
        dx, dy = random.randint(-2, 2), random.randint(-2, 2)
        return np.roll(image, (dy, dx), axis=(0, 1))


def conv_block(cin: int, cout: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cout, kernel_size=3, padding=1),
        nn.BatchNorm2d(cout),
        nn.ReLU(),
        nn.Conv2d(cout, cout, kernel_size=3, padding=1),
        nn.BatchNorm2d(cout),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


class Net(nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(conv_block(3, 16), conv_block(16, 32), conv_block(32, 64))
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = x.mean(dim=(2, 3))
        return self.fc(self.dropout(x))


def train_one_epoch(
    model: nn.Module,
    loader: DataLoader,
    criterion: nn.Module,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> tuple[float, float]:
    model.train()
    running_loss, correct, total = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

        running_loss += loss.item() * len(labels)
        correct += (outputs.argmax(dim=1) == labels).sum().item()
        total += len(labels)
    return running_loss / total, correct / total


def validate(
    model: nn.Module, loader: DataLoader, criterion: nn.Module, device: torch.device
) -> tuple[float, float]:
    model.eval()
    running_loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            running_loss += criterion(outputs, labels).item() * len(labels)
            correct += (outputs.argmax(dim=1) == labels).sum().item()
            total += len(labels)
    return running_loss / total, correct / total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--train-size", type=int, default=3000)
    parser.add_argument("--val-size", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", help="path for the best checkpoint")
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader = DataLoader(ShapesDataset(args.train_size), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(ShapesDataset(args.val_size, train=False, seed=1), batch_size=args.batch_size)

    model = Net(len(CLASSES)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    best_acc = 0.0
    for epoch in range(args.epochs):
        start = time.time()
        train_loss, train_acc = train_one_epoch(model, train_loader, criterion, optimizer, device)
        val_loss, val_acc = validate(model, val_loader, criterion, device)
        scheduler.step()
        print(
            f"epoch {epoch + 1}/{args.epochs}  "
            f"train loss {train_loss:.3f} acc {train_acc:.3f}  "
            f"val loss {val_loss:.3f} acc {val_acc:.3f}  "
            f"({time.time() - start:.1f}s)"
        )
        if val_acc > best_acc:
            best_acc = val_acc
            if args.save:
                torch.save({"model": model.state_dict(), "epoch": epoch, "acc": val_acc}, args.save)
    print(f"best val acc {best_acc:.3f}")


if __name__ == "__main__":
    main()
