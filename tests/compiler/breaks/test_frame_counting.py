"""Graphs, frames and skips; breaks that are met again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from pyrometer.compiler.breaks.frames import compiled_frames
from pyrometer.compiler.breaks.read import count_frames, read_breaks, read_skips
from pyrometer.compiler.log import CompileLog
from pyrometer.source.ownership import owner_of


def test_an_empty_log_has_nothing() -> None:
    log = CompileLog(())
    assert (read_breaks(log), read_skips(log), count_frames(log)) == ([], [], (0, 0, 0))


def test_a_frame_without_tensor_operations_is_neither_graph_nor_skip(see: Callable[..., Any]) -> None:
    seen = see(lambda x: x.shape[0] * 2, torch.ones(3))
    assert seen.counts == (0, 1, 0)
    assert seen.breaks == []


def test_a_whole_graph_is_one_frame(see: Callable[..., Any]) -> None:
    seen = see(lambda x: x.sin() + 1, torch.ones(3))
    assert seen.counts == (1, 1, 0)


def test_calls_that_compile_nothing_change_nothing(programs: ModuleType, watch: Callable[..., Any]) -> None:
    compiled = torch.compile(programs.print_between, backend="eager")

    def work():
        for _ in range(5):
            compiled(torch.ones(3))

    seen = watch(work)
    assert (seen.only.count, seen.counts) == (1, (2, 2, 0))


def test_a_recompiled_frame_meets_its_break_again(
    programs: ModuleType, watch: Callable[..., Any], counting: Any
) -> None:
    compiled = torch.compile(programs.print_between, backend=counting, dynamic=False)

    def work():
        for size in (3, 4, 5):
            compiled(torch.ones(size))

    seen = watch(work)
    assert (seen.only.count, seen.only.compile_ids) == (3, ["0/0", "0/1", "0/2"])
    assert seen.counts == (counting.graphs, 2, 0) == (6, 2, 0)


def test_after_a_reset_frames_are_new_and_breaks_the_same(
    programs: ModuleType, watch: Callable[..., Any]
) -> None:
    def work():
        for _ in range(2):
            torch.compile(programs.print_between, backend="eager")(torch.ones(3))
            torch._dynamo.reset()

    seen = watch(work)
    assert (seen.only.count, seen.only.compile_ids) == (2, ["0/0", "r1:0/0"])
    assert seen.counts == (4, 4, 0)


def test_two_lines_with_the_same_break_are_two_breaks(programs: ModuleType, see: Callable[..., Any]) -> None:
    assert [graph_break.id for graph_break in see(programs.nested, torch.ones(3)).breaks] == [
        "gb0059",
        "gb0059",
    ]


def test_different_breaks_of_one_line_are_told_apart(see: Callable[..., Any]) -> None:
    def program(x):
        print(end=""), torch._dynamo.graph_break()
        return x + 1

    assert [root.id for root in see(program, torch.ones(3)).roots] == ["gb0059", "gb0025"]


def test_graphs_of_training_are_counted_once(programs: ModuleType, watch: Callable[..., Any]) -> None:
    step = torch.compile(programs.SmallStep(), backend="aot_eager")

    def work():
        for _ in range(2):
            step(torch.ones(2, 4)).backward()

    seen = watch(work)
    assert (seen.counts, len(seen.roots)) == ((2, 2, 0), 1)


def test_a_step_that_calls_backward_breaks_there_and_in_the_optimizer(watch: Callable[..., Any]) -> None:
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    @torch.compile(backend="aot_eager")
    def step(x):
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    seen = watch(lambda: step(torch.ones(2, 3)))
    assert [(root.id, root.source) for root in seen.roots] == [
        ("gb0123", "loss.backward()"),
        ("gb0025", "optimizer.step()"),
    ]
    assert seen.counts.graphs == 2
    # What wraps an optimizer's step breaks by itself: whether Dynamo tries it once more depends on what this process compiled before.
    assert [skip.function for skip in seen.skips if owner_of(skip.file) != "torch"] == []
    assert seen.counts.skipped == sum(skip.count for skip in seen.skips)


def test_graphs_of_abandoned_attempts_do_not_count(see: Callable[..., Any]) -> None:
    log = see(lambda x: x.sin(), torch.ones(3)).log
    (graph,) = log.of("dynamo_output_graph")
    again = tuple(
        replace(entry, attempt=1) if entry.kind in {"dynamo_output_graph", "compilation_metrics"} else entry
        for entry in log.entries
    )
    assert count_frames(CompileLog((graph, *again))).graphs == 1


def test_a_log_that_ends_within_a_compilation_still_counts(see: Callable[..., Any]) -> None:
    log = see(lambda x: x.sin(), torch.ones(3)).log
    cut = tuple(entry for entry in log.entries if entry.kind != "compilation_metrics")
    assert count_frames(CompileLog(cut)) == (1, 1, 0)
    (made,) = compiled_frames(CompileLog(cut)).values()
    assert made.code.function == "<lambda>"


def test_entries_of_unknown_shape_are_no_error(programs: ModuleType, see: Callable[..., Any]) -> None:
    log = see(programs.break_in_loop, torch.ones(3)).log
    for odd in (None, 3, "text", [], {"stack": 5}, {"fail_type": 7, "co_firstlineno": "x"}):
        for kind in {entry.kind for entry in log.entries}:
            entries = tuple(
                replace(entry, metadata=odd, payload="\x00 File") if entry.kind == kind else entry
                for entry in log.entries
            )
            changed = CompileLog(entries)
            read_breaks(changed)
            read_skips(changed)
            count_frames(changed)
    nameless = CompileLog(tuple(replace(entry, compile_id=None) for entry in log.entries))
    assert (read_breaks(nameless), count_frames(nameless)) == ([], (0, 0, 0))
