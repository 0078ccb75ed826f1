"""The usual shapes of graph breaks: right line, right id, no phantom, and the right number of graphs and frames."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from representative import every

from pyrometer.compiler.advice.advise import with_advice

LOG = logging.getLogger("program")
PROGRAMS = Path(__file__).with_name("programs.py")
NAMES = [
    "print between operations",
    "data-dependent if",
    ".item()",
    "break in a for loop",
    "break in try/finally",
    "with open()",
    "generator",
    "nested inner() with two breaks",
    "call into C",
    "print before any operation",
    "disabled function",
    "graph_break()",
    "detector: mask, loop over boxes",
    "training step",
    "under autocast",
    "compiled function in another",
    "break in a comprehension",
]


def case_of(programs: ModuleType, name: str) -> Any:
    (case,) = (case for case in programs.CASES if case.name == name)
    return case


def test_every_program_is_tested(programs: ModuleType) -> None:
    assert [case.name for case in programs.CASES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_breaks_frames_and_graphs(
    name: str, programs: ModuleType, see: Callable[..., Any], counting: Any
) -> None:
    if name == "break in a comprehension" and sys.version_info >= (3, 12):
        pytest.skip("a comprehension is no function of its own since Python 3.12")
    case = case_of(programs, name)
    nested_backend = name == "compiled function in another"  # it chose its own backend where it was written
    seen = see(case.program, torch.ones(case.shape), backend="eager" if nested_backend else counting)
    assert seen.found == case.truth
    assert all(Path(graph_break.file) == PROGRAMS for graph_break in seen.breaks)
    assert [graph_break.id for graph_break in seen.breaks if graph_break.chained] == list(case.chained)
    assert seen.counts == (case.graphs, case.frames, case.skipped)
    assert len(seen.skips) == case.skipped
    assert nested_backend or counting.graphs == case.graphs


@pytest.mark.parametrize("name", every(3, NAMES))
def test_each_root_cause_shows_its_own_line(name: str, programs: ModuleType, see: Callable[..., Any]) -> None:
    case = case_of(programs, name)
    seen = see(case.program, torch.ones(case.shape))
    lines = PROGRAMS.read_text(encoding="utf-8").splitlines()
    for graph_break in seen.breaks:
        assert graph_break.source == lines[graph_break.line - 1].strip()
        assert graph_break.user_stack[-1].text == f"{graph_break.file}:{graph_break.line}"
        assert graph_break.reason
        assert "\n" not in graph_break.reason
        assert graph_break.explanation
        assert graph_break.hints


def test_a_skipped_loop_names_the_break_and_what_it_led_to(
    programs: ModuleType, see: Callable[..., Any]
) -> None:
    root, loop = see(programs.break_in_loop, torch.ones(4)).breaks
    assert (root.skips_frame, loop.skips_frame) == (True, True)
    assert loop.chained_to == f"{root.file}:{root.line}"
    assert loop.reason == "graph break in loop"


def test_the_detector_is_named_with_its_methods(programs: ModuleType, see: Callable[..., Any]) -> None:
    seen = see(programs.Detector(), torch.ones(1, 3, 8, 8))
    assert [root.function for root in seen.roots] == ["forward", "widths"]
    (skip,) = seen.skips
    assert (skip.function, skip.kind, skip.num_breaks) == ("widths", "break", 2)
    assert [place.function for place in seen.roots[1].user_stack[-2:]] == ["forward", "widths"]


def test_a_break_in_an_inlined_function_is_one_break_met_in_both_frames(
    programs: ModuleType, see: Callable[..., Any]
) -> None:
    first, second = see(programs.nested, torch.ones(4)).breaks
    assert (first.count, first.compile_ids) == (2, ["0/0", "1/0"])
    assert second.count == 1


def test_an_unsupported_context_manager_of_another_line_is_a_root_cause(see: Callable[..., Any]) -> None:
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123

        def program(x):
            y = x.sin()
            y = y + 1
            with file:
                y = y * 2
            return y + 2

        seen = see(program, torch.ones(3))
    assert (seen.only.id, seen.only.source, seen.only.chained) == ("gb0142", "with file:", False)
    assert seen.only.skips_rest
    assert seen.counts == (1, 1, 0)


class Plain:
    def keep(self, x, _):
        return x


def test_what_compiling_up_to_a_break_ran_into_is_chained_to_it(see: Callable[..., Any]) -> None:
    def program(x):
        y = x.sin()
        return Plain().keep(y, print(end="")) + 1  # a method of an object that exists only while it is traced

    root, follows = see(program, torch.ones(3)).breaks
    assert (root.id, follows.id) == ("gb0059", "gb0092")
    assert follows.chained_to == f"{root.file}:{root.line}"
    assert (root.skips_frame, follows.skips_frame) == (True, True)


def test_a_break_under_a_context_manager_of_the_users_own_is_the_root_cause(see: Callable[..., Any]) -> None:
    @contextlib.contextmanager
    def own():
        yield

    def program(x):
        with own():
            y = x + 1
            print(end="")
        return y + 1

    root, follows = see(program, torch.ones(3)).breaks
    assert (root.id, follows.id, root.source) == ("gb0059", "gb0066", 'print(end="")')
    assert (root.chained, follows.chained) == (False, True)


def test_a_logging_call_breaks_once(see: Callable[..., Any]) -> None:
    def program(x):
        y = x + 1
        LOG.info("mean %s", y.mean())
        return y * 2

    root, follows = see(program, torch.ones(3)).breaks
    assert root.source == follows.source == 'LOG.info("mean %s", y.mean())'
    assert (root.chained, follows.chained, follows.chained_to) == (False, True, f"{root.file}:{root.line}")


def test_a_break_that_torch_asks_for_in_its_own_code_is_said_to_be_torchs(see: Callable[..., Any]) -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)

    def program(x):
        torch._dynamo.graph_break()
        return x + 1

    (own,) = with_advice(see(program, torch.ones(3)).breaks)
    assert (own.inside_torch, own.advice[0].title) == (False, "remove the call")
    advice = with_advice(see(torch.optim.SGD([weight], lr=0.1).step).breaks)
    asked = [graph_break for graph_break in advice if graph_break.id == "gb0025"]
    assert asked
    assert all(graph_break.inside_torch for graph_break in asked)
    assert not any("remove" in each.title for graph_break in asked for each in graph_break.advice)


def test_the_benchmark_runs_the_same_programs(programs: ModuleType) -> None:
    file = Path(__file__).parents[3] / "benchmarks" / "compile_breaks.py"
    spec = importlib.util.spec_from_file_location("compile_breaks", file)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    assert [case.name for case in benchmark.load_cases()] == [case.name for case in programs.CASES]
