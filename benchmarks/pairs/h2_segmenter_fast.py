"""Road-scene segmentation with a confusion matrix that is kept up to date while training."""

import time

import torch
from torch import nn

CLASSES = 6


class Segmenter(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
        )
        self.decode = nn.ConvTranspose2d(2 * width, CLASSES, 2, stride=2)

    def forward(self, image):
        return self.decode(self.encode(image))


class MeanIoU:
    def __init__(self, classes):
        self.matrix = torch.zeros(classes, classes, dtype=torch.long)

    def update(self, predicted, truth):
        cells = torch.bincount((truth * CLASSES + predicted).flatten(), minlength=self.matrix.numel())
        self.matrix += cells.view_as(self.matrix)

    def compute(self):
        hits = self.matrix.diag().float()
        return (hits / (self.matrix.sum(0) + self.matrix.sum(1) - hits).clamp(min=1)).mean()


class Scenes:
    def __init__(self, count=40):
        self.images = torch.rand(count, 3, 64, 96)
        self.labels = torch.randint(CLASSES, (count, 64, 96))

    def batch(self, step, size=4):
        rows = [(step * size + i) % len(self.images) for i in range(size)]
        return self.images[rows], self.labels[rows]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    scenes, model, metric = Scenes(), Segmenter(), MeanIoU(CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    started = time.perf_counter()
    for step in range(90):
        images, labels = scenes.batch(step)
        logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(logits.detach().argmax(1), labels)
    print(f"90 steps in {time.perf_counter() - started:.2f} s: loss {loss:.4f}, IoU {metric.compute():.5f}")


if __name__ == "__main__":
    main()
