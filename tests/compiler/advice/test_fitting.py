"""Levers are named where the report gives a reason for them, and nowhere else."""

from __future__ import annotations

import functools

import msgspec
import pytest
import torch
from torch import nn

from pyrometer.compiler.advice.fitting import fitting_levers
from pyrometer.compiler.inspection.observe import observe_compile

pytestmark = pytest.mark.slow  # compiles


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


@functools.cache
def observed(*sizes):
    with observe_compile() as seen:
        compiled = torch.compile(Deep(), backend="aot_eager")
        for size in sizes:
            compiled(torch.ones(size, 4))
    return seen.report()


def names(report, compile_s):
    cost = msgspec.structs.replace(report.cost, compile_s=compile_s)
    return [lever.lever for lever in fitting_levers(msgspec.structs.replace(report, cost=cost))]


def test_a_program_that_compiles_once_and_quickly_needs_none():
    assert names(observed(3), 1.0) == []


def test_sizes_that_vary_and_recompilations_have_theirs():
    assert names(observed(3, 5), 1.0) == ["mark_dynamic", "dynamic", "shape_buckets", "set_stance"]


def test_repeated_blocks_count_once_compiling_takes_long():
    assert names(observed(3), 60.0) == ["compile_blocks", "share_regions"]


def test_the_report_carries_them():
    levers = {
        lever.lever for lever in observed(3, 5).levers
    }  # and, on a busy machine, those against long compilations
    assert levers >= {"mark_dynamic", "dynamic", "shape_buckets", "set_stance"}
