"""A teacher whose weights are made anew in each step."""

import torch
from torch import nn


class Teacher:
    def __init__(self, student):
        self.weights = {name: value.detach().clone() for name, value in student.state_dict().items()}

    def follow(self, student):
        self.weights = {
            name: 0.9 * self.weights[name] + 0.1 * value.detach()
            for name, value in student.state_dict().items()
        }


def make():
    student = nn.Linear(40, 40)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    teacher = Teacher(student)
    x = torch.randn(10, 40)

    def step():
        target = nn.functional.linear(x, teacher.weights["weight"], teacher.weights["bias"])
        optimizer.zero_grad()
        loss = (student(x) - target + 1).abs().mean()
        loss.backward()
        optimizer.step()
        teacher.follow(student)
        return loss.item()

    return step


EXPECTED = {"verdict": "stable", "note": "each step leaves survivors, but they die in the next one"}
