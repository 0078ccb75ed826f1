"""Self-distillation of a convolutional encoder: the teacher is a running average of the student."""

import copy
import time

import torch
import torch.nn.functional as F
from torch import nn


def encoder(width=64, out=256):
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 1024),
        nn.ReLU(),
        nn.Linear(1024, out),
    )


class Teacher:
    def __init__(self, student, decay=0.99):
        self.decay = decay
        self.model = copy.deepcopy(student).requires_grad_(requires_grad=False)

    @torch.no_grad()
    def follow(self, student):
        torch._foreach_lerp_(list(self.model.parameters()), list(student.parameters()), 1 - self.decay)

    @torch.no_grad()
    def __call__(self, images):
        return F.normalize(self.model(images), dim=1)


def views(images, step):
    generator = torch.Generator().manual_seed(step)
    noise = torch.randn(images.shape, generator=generator)
    return images + 0.1 * noise, images.flip(-1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    photos = torch.rand(256, 3, 24, 24)
    student = encoder()
    teacher = Teacher(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05)

    started = time.perf_counter()
    for step in range(200):
        start = step * 8 % len(photos)
        noisy, mirrored = views(photos[start : start + 8], step)
        agreement = (F.normalize(student(noisy), dim=1) * teacher(mirrored)).sum(1)
        loss = (2 - 2 * agreement).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        teacher.follow(student)
    print(f"200 steps in {time.perf_counter() - started:.2f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
