"""Small programs, compiled once with Inductor under deep probes, and what was read of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.fusion.read import read_fusion
from pyrometer.compiler.fusion.record import FusedGroup, FusionReport
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.private.inductor import deep_probes


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.wide = nn.Linear(64, 128)
        self.out = nn.Linear(128, 64)

    def forward(self, x):
        h = self.norm(x)
        h = self.wide(h)
        h = torch.nn.functional.gelu(h)
        h = self.out(h)
        return torch.softmax(h + x, -1)


def chain(a, b, c):
    y = a + b
    y = torch.relu(y)
    return y * c


def foldable(x):
    ones = torch.full(x.shape, 1.0)
    y = torch.dropout(x * ones + torch.zeros(x.shape), 0.5, False)
    y = y.view(-1).view(x.shape)
    return torch.sin(y)


def both_ways(x):
    return x.sum(0), x.sum(1)


def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / 8.0, -1) @ v


PROGRAMS = {
    "chain": chain,
    "foldable": foldable,
    "both_ways": both_ways,
    "attention": attention,
    "block": Block.forward,
}


@dataclass
class Compiled:
    """What was told of each program."""

    log: CompileLog
    report: FusionReport
    results: dict[str, tuple[Any, Any]]
    ids: dict[str, str]

    def groups(self, program: str, *, is_backward: bool = False) -> list[FusedGroup]:
        return [
            group
            for group in self.report.groups
            if group.compile_id == self.ids[program] and group.is_backward == is_backward
        ]

    def place(self, program: str, line: int) -> str:
        """A line of a program, counted from its `def`."""
        code = PROGRAMS[program].__code__
        return f"{code.co_filename}:{code.co_firstlineno + line}"

    def without_probes(self) -> FusionReport:
        own = tuple(entry for entry in self.log.entries if not entry.kind.startswith("pyrometer."))
        return read_fusion(replace(self.log, entries=own))


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = {
        "chain": [torch.randn(4096) for _ in range(3)],
        "foldable": [torch.randn(16, 32)],
        "both_ways": [torch.randint(-8, 8, (512, 512)).float()],  # sums are exact
        "attention": [torch.randn(2, 4, 32, 64) for _ in range(3)],
    }
    results = {}
    ids = {name: f"{number}/0" for number, name in enumerate(PROGRAMS)}
    with collect() as collector:
        with deep_probes(collector):
            for name, args in inputs.items():
                with torch.no_grad():
                    results[name] = (PROGRAMS[name](*args), torch.compile(PROGRAMS[name])(*args))
            block, x = Block(), torch.randn(32, 64, requires_grad=True)
            results["block"] = (block(x), torch.compile(block)(x))
            results["block"][1].square().sum().backward()
        log = collector.log()
    return Compiled(log, read_fusion(log), results, ids)


@pytest.fixture
def attend():
    """A program that needs no C++ compiler: what it calls is ready-made."""

    def attend(q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) / 8.0, -1) @ v

    return attend, [torch.randn(2, 4, 32, 64) for _ in range(3)]
