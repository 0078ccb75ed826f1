"""PYR128: tables and masks that are the same each time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from waste import case_at

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.workload.program.record import Program

CODE = "PYR128"
Sampled = Callable[..., Case]


TABLES = """
import math

import torch


def sines(length, width):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    return table


class Net(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window
        self.mix = torch.nn.Linear(8, 8)
        self.register_buffer("edges", torch.ones(4, 4))
        self.first = sines(window, 8)

    def forward(self, x: torch.Tensor):
        n = x.shape[1]
        mask = torch.ones(n, n, device=x.device).tril()
        degree = self.edges.sum(dim=1)
        noise = torch.rand(n, n)
        scaled = x * 2.0
        return self.mix(scaled + sines(n, 8)), mask, degree, noise
"""


def share_of(lines: list[int]) -> dict[int, dict[str, float]]:
    return {line: {"operator torch": 0.1} for line in lines}


def test_statements_of_sizes_and_buffers_are_counted_together(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    every = range(7, 30)
    finding = only(CODE, sampled(TABLES, {**share_of(list(every)), 11: {"operator torch.sin": 0.2}}))
    assert (finding.where.line, finding.where.function) == (11, "sines")
    counted = round((finding.cost.share if finding.cost else 0) * 10)
    assert counted == 7  # 8 to 11, of which 11 counts twice, 25 and 26
    assert "register_buffer" in finding.advice.title


def test_lines_that_were_seen_to_compute_what_the_step_before_did_count_as_well(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    line = 24  # of which the source alone does not tell
    flow = case_at(CODE, 0.5).dataflow
    assert flow is not None
    place = msgspec.structs.replace(flow.repeated[0].where, file="train.py", line=line)
    fact = msgspec.structs.replace(flow.repeated[0], where=place, of_line=0.5)
    case = sampled(TABLES, {line: {"operator torch": 0.9}})
    finding = only(
        CODE, msgspec.structs.replace(case, dataflow=msgspec.structs.replace(flow, repeated=[fact]))
    )
    assert finding.where.line == line
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.45)


@pytest.mark.parametrize("line", [24, 27, 28, 29])
def test_what_changes_is_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], line: int
) -> None:
    assert findings(CODE, sampled(TABLES, {line: {"operator torch": 0.9}})) == []


CHANGING = [
    "self.state[0] = x.sum()\n        return self.state * torch.ones(3)",  # written in each step
    "table = torch.zeros(3)\n        table[0] = x.sum()\n        return table * 2",
    "table = torch.zeros_like(x) + x\n        return table",
    "return torch.randn(len(x))",
    "total = x.sum()\n        return torch.full((3,), 1.0) * total",
]


@pytest.mark.parametrize("body", CHANGING)
def test_what_is_made_of_the_input_is_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], body: str
) -> None:
    text = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.register_buffer('state', torch.zeros(3))\n\n    def forward(self, x: torch.Tensor):\n        {body}\n"
    )
    last = text.count("\n")
    assert findings(CODE, sampled(text, {last: {"operator torch": 0.9}})) == []


ANCHORS = """
import itertools
import math

import torch


class Anchors:
    def __init__(self, strides, scales, ratios):
        self.strides, self.scales, self.ratios = strides, scales, ratios

    def sizes(self, stride):
        for scale, ratio in itertools.product(self.scales, self.ratios):
            yield 4 * stride * scale * math.sqrt(ratio), 4 * stride * scale

    def __call__(self, maps):
        made = []
        for stride, level in zip(self.strides, maps):
            height, width = level.shape[-2:]
            for row in range(height):
                middle = (row + 0.5) * stride
                for w, h in self.sizes(stride):
                    made.append((middle, w, h))
        return torch.tensor(made)

    def sums(self, maps):
        made = []
        for stride, level in zip(self.strides, maps):
            for row in range(len(level)):
                made.append(level[row].sum() * stride)
        return torch.tensor(made)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.anchors = Anchors((4, 8), (1, 2), (0.5, 1))

    def forward(self, x: torch.Tensor):
        return self.anchors(x), self.anchors.sums(x)
"""


@pytest.mark.parametrize(
    ("line", "told"), [(20, True), (21, True), (23, True), (24, True), (29, False), (31, False)]
)
def test_what_python_makes_of_shapes_before_it_becomes_a_tensor_counts_as_well(
    sampled: Sampled, findings: Callable[..., list[Finding]], line: int, told: bool
) -> None:
    assert bool(findings(CODE, sampled(ANCHORS, {line: {"python python": 0.9}}))) == told


STYLES = {
    "a comprehension": "rows = [(i * 0.5, j * 0.5) for i in range(x.shape[1]) for j in range(x.shape[2])]\n    return torch.tensor(rows)",
    "nested loops over a table": "table = torch.zeros(x.shape[1], x.shape[1])\n    for i in range(x.shape[1]):\n        for j in range(i):\n"
    "            table[i, j] = i - j\n    return table",
    "enumerated strides": "parts = []\n    for level, stride in enumerate((4, 8)):\n        grid = torch.arange(x.shape[1] // stride)\n"
    "        parts.append(grid * stride + level)\n    return torch.cat(parts)",
    "numpy": "ys, xs = np.meshgrid(np.arange(x.shape[1]), np.arange(x.shape[2]))\n    return torch.from_numpy(np.stack([ys, xs]))",
}
OF_VALUES = {
    "lengths": "rows = [i * 0.5 for i in range(int(x.sum()))]\n    return torch.tensor(rows)",
    "a table of values": "table = torch.zeros(x.shape[1])\n    for i in range(x.shape[1]):\n        table[i] = x[0, i].max()\n    return table",
    "zipped values": "parts = []\n    for row, stride in zip(x, (4, 8)):\n        parts.append(row * stride)\n    return torch.stack(parts)",
    "random numbers": "noise = [random.random() for _ in range(x.shape[1])]\n    return torch.tensor(noise)",
}


@pytest.mark.parametrize(
    ("body", "told"),
    [*((body, True) for body in STYLES.values()), *((body, False) for body in OF_VALUES.values())],
)
def test_tables_of_shapes_in_any_style_and_none_of_values(
    sampled: Sampled, findings: Callable[..., list[Finding]], body: str, told: bool
) -> None:
    text = f"import random\n\nimport numpy as np\nimport torch\n\n\ndef make(x):\n    {body}\n"
    last = text.count("\n")
    lines = {line: {"python python": 0.9 / (last - 7)} for line in range(8, last + 1)}
    assert bool(findings(CODE, sampled(text, lines))) == told


OF_A_SCRIPT = """
import torch

limit = torch.ones(3)
kept = torch.zeros(3)
net = torch.nn.Linear(3, 3)


def work(x, decay=0.9):
    edge = limit * 2.0
    old = kept * 2.0
    weight = net.weight * 2.0
    return x * decay


for step in range(100):
    batch = torch.randn(3)
    for row in batch:
        kept[0] = row
    net(work(batch)).sum().backward()
"""


@pytest.mark.parametrize(("line", "told"), [(10, True), (11, False), (12, False), (13, False)])
def test_what_a_script_makes_anew_in_its_loop_is_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], line: int, told: bool
) -> None:
    assert bool(findings(CODE, sampled(OF_A_SCRIPT, {line: {"operator *": 0.9}}))) == told


OF_WEIGHTS = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = torch.nn.Parameter(torch.ones(4, 4))
        self.mix = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        turn = torch.linalg.matrix_exp(self.raw - self.raw.T)
        return self.mix(x) @ turn
"""


@pytest.mark.parametrize(("kind", "lines"), [("inference", [12]), ("training", [])])
def test_what_is_made_of_parameters_alone_changes_only_in_training(
    sampled: Sampled, findings: Callable[..., list[Finding]], kind: Any, lines: list[int]
) -> None:
    program = Program(kind=kind, device="cpu", compiled=False, grad_mode="no_grad")
    case = sampled(
        OF_WEIGHTS, {12: {"operator torch.linalg.matrix_exp": 0.6}, 13: {"operator @": 0.3}}, program=program
    )
    assert [finding.where.line for finding in findings(CODE, case)] == lines


def test_the_buffer_gives_the_same(run: Callable[..., dict[str, Any]], ops_of: Any) -> None:
    x = torch.zeros(16, 8)
    before = run(CODE, "Example", torch=torch, math=math)["Positions"]()
    after = run(CODE, "Use instead", torch=torch, math=math)["Positions"](32, 8)
    expected, slow = ops_of(lambda: before(x))
    result, fast = ops_of(lambda: after(x))
    torch.testing.assert_close(result, expected)
    assert fast.total() * 5 < slow.total()


STATE = """
import torch


def work():
    lines = torch.zeros(64, 4096)

    def block():
        lines.mul_(0.7).add_(lines.roll(1, 1), alpha=0.1)
        return lines.sum()

    return block
"""


def test_a_state_that_each_step_changes_is_no_table(
    sampled: Sampled, findings: Callable[..., list[Finding]]
) -> None:
    assert findings(CODE, sampled(STATE, {9: {"operator Tensor.add_": 0.9}})) == []
