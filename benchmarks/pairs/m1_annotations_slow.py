"""Trains an attribute classifier on image crops; the annotations lie in memory as plain Python objects."""

import gc
import time

import torch
from torch import nn


def read_annotations(count=5_000):
    """What a JSON file of annotations looks like once it is parsed."""
    return [
        {"id": n, "box": [n % 64, n % 48, 16, 16], "attributes": {"colour": n % 7, "occluded": n % 3 == 0}}
        for n in range(count)
    ]


class CropClassifier(nn.Module):
    def __init__(self, colours=7):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU()
        )
        self.colour = nn.Linear(32, colours)
        self.occluded = nn.Linear(32, 1)

    def forward(self, crops):
        pooled = self.features(crops).mean((2, 3))
        return self.colour(pooled), self.occluded(pooled).squeeze(1)


def free_memory():
    """Keep the resident memory flat over long runs."""
    gc.collect()


def batches(annotations, image, size=16, count=120):
    for step in range(count):
        chosen = [annotations[(step * 37 + i * 11) % len(annotations)] for i in range(size)]
        crops = [
            image[:, y : y + height, x : x + width]
            for x, y, width, height in (annotation["box"] for annotation in chosen)
        ]
        colour = torch.tensor([annotation["attributes"]["colour"] for annotation in chosen])
        occluded = torch.tensor([float(annotation["attributes"]["occluded"]) for annotation in chosen])
        yield torch.stack(crops), colour, occluded


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    annotations, image = read_annotations(), torch.rand(3, 64, 80)
    model = CropClassifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    started = time.perf_counter()
    for step, (crops, colour, occluded) in enumerate(batches(annotations, image)):
        colour_logits, occluded_logits = model(crops)
        loss = nn.functional.cross_entropy(colour_logits, colour)
        loss = loss + nn.functional.binary_cross_entropy_with_logits(occluded_logits, occluded)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 12 == 0:
            free_memory()
    print(f"120 steps in {time.perf_counter() - started:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
