from __future__ import annotations

import dataclasses

import pytest
import torch

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.inspection.ranks import compare_ranks, rank_of
from pyrometer.compiler.log import CompileLog


def compiled_log(rank: int, *, breaks: bool = False, sizes: tuple[int, ...] = (4,)) -> CompileLog:
    """What a rank that compiles this would leave."""
    torch._dynamo.reset()

    def step(x):
        y = x * 2
        if breaks:
            torch._dynamo.graph_break()
        return y + 1

    compiled = torch.compile(step, backend="eager")
    with collect() as collector:
        for size in sizes:
            compiled(torch.ones(size))
    log = collector.log()
    return dataclasses.replace(
        log, entries=tuple(dataclasses.replace(entry, rank=rank) for entry in log.entries)
    )


def test_ranks_that_compile_the_same_do_not_differ():
    assert compare_ranks([compiled_log(0), compiled_log(1)]) == []


def test_a_break_on_one_rank_only_is_told_with_its_rank():
    lines = compare_ranks([compiled_log(0), compiled_log(1, breaks=True)])

    assert any(line.startswith("compilations (2 on rank 1, 1 on rank 0)") for line in lines)
    assert any(line.startswith("graph breaks") and "nothing more on rank 0" in line for line in lines)


def test_a_recompilation_on_one_rank_only_is_told_with_its_cause():
    lines = compare_ranks([compiled_log(0, sizes=(4, 5)), compiled_log(1)])

    (line,) = [line for line in lines if line.startswith("recompilations")]
    assert "size mismatch" in line
    assert "nothing more on rank 1" in line


@pytest.mark.parametrize("logs", [[], [CompileLog(())], [CompileLog(()), CompileLog(())]])
def test_empty_logs_do_not_differ(logs):
    assert compare_ranks(logs) == []


def test_a_rank_is_read_from_the_entries():
    assert rank_of(compiled_log(3)) == 3
    assert rank_of(CompileLog(())) is None
