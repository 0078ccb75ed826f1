"""Programs whose graph breaks are known: every line at which one breaks says so, with its id.

A line that ends in `# breaks: gb0059` is a root cause. Loaded by the tests and by the benchmark beside them.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

MARK = re.compile(r"# breaks: (gb\d{4})$")


def print_between(x):
    y = x + 1
    print(end="")  # breaks: gb0059
    return y * 2


def data_dependent_branch(x):
    y = x * 2
    if y.sum() > 0:  # breaks: gb0170
        return y + 1
    return y - 1


def item(x):
    y = x.sin()
    scale = y.sum().item()  # breaks: gb0124
    return x * scale


def break_in_loop(x):
    y = x.cos()
    for i in range(3):
        y = y + i
        print(end="")  # breaks: gb0059
    return y


def break_in_try(x):
    y = x.sin()
    try:
        y = y + 1
        print(end="")  # breaks: gb0059
        y = y * 2
    finally:
        y = y - 1
    return y


def with_open(x):
    y = x.sin()
    with open(os.devnull, "rb"):  # noqa: PTH123  # breaks: gb0059
        y = y + 1
    return y * 2


def parts(x):
    for i in range(3):
        print(end="")  # breaks: gb0059
        yield x + i


def generator(x):
    y = x.sin()
    for part in parts(x):
        y = y + part
    return y


def inner(x):
    x = x + 1
    print(end="")  # breaks: gb0059
    x = x * 2
    print(end="")  # breaks: gb0059
    return x - 1


def nested(x):
    y = x.sin()
    y = inner(y)
    return y.cos()


def c_call(x):
    y = x.sin()
    start = time.time_ns()  # breaks: gb0007
    return y + 1, start


def print_first(x):
    print(end="")  # breaks: gb0059
    return x + 1


@torch._dynamo.disable
def disabled(x):
    return x * 3


def calls_disabled(x):
    y = x + 1
    y = disabled(y)  # breaks: gb0098
    return y * 2


def asks_for_a_break(x):
    y = x + 1
    torch._dynamo.graph_break()  # breaks: gb0025
    return y * 2


class Detector(nn.Module):
    """A detection head that keeps confident boxes and looks at each of them on the host."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, padding=1)
        self.boxes = nn.Conv2d(8, 4, 1)
        self.scores = nn.Conv2d(8, 1, 1)

    def forward(self, images):
        features = self.features(images).relu()
        boxes = self.boxes(features).flatten(2).transpose(1, 2)[0]
        scores = self.scores(features).flatten()
        kept = boxes[scores > scores.mean()]  # breaks: gb0036
        return self.widths(kept * 2)

    def widths(self, boxes):
        total = 0.0
        for box in boxes:
            total += (box[2] - box[0]).item()  # breaks: gb0124
        return boxes * total


class SmallStep(nn.Module):
    """A training step of its own: the loss is printed before it is used."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        print(end="")  # breaks: gb0059
        return (y * 2).sum()


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        print(end="")  # breaks: gb0059
        return y @ x


@torch.compile(backend="eager")
def compiled_inside(x):
    y = x + 1
    print(end="")  # breaks: gb0059
    return y * 2


def calls_compiled(x):
    return compiled_inside(x).sin()


def in_comprehension(x):
    y = x.sin()
    return sum([print(end="") or y + i for i in range(3)])  # breaks: gb0059


@dataclass(frozen=True)
class Case:
    """A program, and what is true of it."""

    name: str
    program: Callable[..., Any]
    marked: tuple[Any, ...]
    """The functions that hold its marks, in the order in which they run."""
    graphs: int
    frames: int
    skipped: int = 0
    chained: tuple[str, ...] = ()
    """Ids of breaks that only follow from the marked ones."""
    shape: tuple[int, ...] = (4,)

    @property
    def truth(self) -> list[tuple[str, int]]:
        """Id and line of every root cause, in the order in which they run."""
        return [mark for function in self.marked for mark in marks(function)]


def marks(function: Any) -> list[tuple[str, int]]:
    """The marked lines of a function or class."""
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    found = ((MARK.search(line.rstrip()), number) for number, line in enumerate(lines, first))
    return [(match[1], number) for match, number in found if match]


DETECTOR, STEP = Detector(), SmallStep()

CASES = [
    Case("print between operations", print_between, (print_between,), graphs=2, frames=2),
    Case("data-dependent if", data_dependent_branch, (data_dependent_branch,), graphs=2, frames=2),
    Case(".item()", item, (item,), graphs=2, frames=2),
    Case("break in a for loop", break_in_loop, (break_in_loop,), 0, 1, 1, chained=("gb7000",)),
    Case("break in try/finally", break_in_try, (break_in_try,), 0, 1, 1),
    Case("with open()", with_open, (with_open,), 1, 2, 1, chained=("gb0142",)),
    Case("generator", generator, (parts,), 0, 1, 1),
    Case("nested inner() with two breaks", nested, (inner,), graphs=5, frames=5),
    Case("call into C", c_call, (c_call,), graphs=2, frames=2),
    Case("print before any operation", print_first, (print_first,), graphs=1, frames=2),
    Case("disabled function", calls_disabled, (calls_disabled,), graphs=2, frames=2),
    Case("graph_break()", asks_for_a_break, (asks_for_a_break,), graphs=2, frames=2),
    Case("detector: mask, loop over boxes", DETECTOR, (Detector,), 2, 3, 1, ("gb7000",), (1, 3, 8, 8)),
    Case("training step", STEP, (SmallStep,), graphs=2, frames=2, shape=(2, 4)),
    Case("under autocast", under_autocast, (under_autocast,), graphs=2, frames=2, shape=(4, 4)),
    Case("compiled function in another", calls_compiled, (compiled_inside,), graphs=3, frames=4),
    Case("break in a comprehension", in_comprehension, (in_comprehension,), 2, 3, 1, ("gb7000",)),
]
