"""Frames that were given up: what ended them, and whether somebody was told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    SkipFrame,
    TorchRuntimeError,
    Unsupported,
)
from torch._subclasses.fake_tensor import UnsupportedOperatorException

HERE = Path(__file__)


def two_ops(x):
    y = x + 1
    return y * 2


def failing(_module: Any, _inputs: Any) -> Any:
    raise ValueError("no code for this\ndevice")


def test_a_function_that_a_break_skips(programs: ModuleType, see: Callable[..., Any]) -> None:
    (skip,) = see(programs.break_in_try, torch.ones(3)).skips
    assert (skip.kind, skip.function, skip.raised) == ("break", "break_in_try", False)
    assert skip.line == programs.break_in_try.__code__.co_firstlineno
    assert (skip.reason, skip.num_breaks, skip.compile_id) == ("Failed to trace builtin operator", 1, "0/0")
    assert Path(skip.called_from[-1].file).name == "conftest.py"


def test_the_rest_behind_a_break_bears_the_functions_name(
    programs: ModuleType, see: Callable[..., Any]
) -> None:
    (skip,) = see(programs.with_open, torch.ones(3)).skips
    assert (skip.function, skip.compile_id, skip.reason) == (
        "with_open",
        "1/0",
        "Unsupported context manager",
    )


def test_fullgraph_reports_the_break_that_it_raises(programs: ModuleType, see: Callable[..., Any]) -> None:
    seen = see(programs.nested, torch.ones(3), fullgraph=True, raises=Unsupported)
    ((_, line), _) = programs.marks(programs.inner)
    assert seen.found == [("gb0059", line)]
    assert [place.function for place in seen.only.user_stack[-2:]] == ["nested", "inner"]
    assert seen.only.source == 'print(end="")  # breaks: gb0059'
    assert seen.only.hints
    assert not seen.only.skips_frame  # it was raised, so that nothing runs eagerly
    (skip,) = seen.skips
    assert (skip.kind, skip.raised, skip.function) == ("raised", True, "nested")
    assert seen.counts == (0, 1, 1)


def test_errors_on_breaks_in_a_region_are_reported_as_well(see: Callable[..., Any]) -> None:
    def program(x):
        y = x + 1
        with torch._dynamo.error_on_graph_break(True):
            print(end="")
        return y

    seen = see(program, torch.ones(3), raises=Unsupported)
    assert (seen.only.id, seen.only.source, seen.skips[0].raised) == ("gb0059", 'print(end="")', True)


def test_a_program_that_goes_on_after_the_error_fails_once_with_a_count(
    programs: ModuleType, watch: Callable[..., Any]
) -> None:
    compiled = torch.compile(programs.print_between, backend="eager", fullgraph=True)

    def work():
        for _ in range(3):
            with pytest.raises(Unsupported):
                compiled(torch.ones(3))

    seen = watch(work)
    (skip,) = seen.skips
    assert (skip.count, seen.only.count, seen.counts) == (3, 3, (0, 1, 1))


def test_the_recompile_limit(watch: Callable[..., Any], counting: Any) -> None:
    compiled = torch.compile(two_ops, backend=counting, dynamic=False)

    def work():
        with torch._dynamo.config.patch(recompile_limit=2):
            for size in range(2, 8):
                compiled(torch.ones(size))

    seen = watch(work)
    (skip,) = seen.skips
    assert (skip.kind, skip.raised, skip.num_breaks) == ("recompile_limit", False, 0)
    assert skip.reason == "recompile_limit of 2 exceeded"
    assert (skip.function, Path(skip.file), skip.compile_id) == ("two_ops", HERE, "0/2")
    assert skip.lost_ops == 2
    assert seen.breaks == []
    assert seen.counts == (counting.graphs, 1, 1) == (2, 1, 1)


def test_the_recompile_limit_under_fullgraph(watch: Callable[..., Any]) -> None:
    compiled = torch.compile(two_ops, backend="eager", dynamic=False, fullgraph=True)

    def work():
        with torch._dynamo.config.patch(recompile_limit=1):
            for size in range(2, 5):
                compiled(torch.ones(size))

    (skip,) = watch(work, FailOnRecompileLimitHit).skips
    assert (skip.kind, skip.raised) == ("raised", True)


def test_a_backend_that_fails(see: Callable[..., Any]) -> None:
    seen = see(two_ops, torch.ones(3), backend=failing, raises=BackendCompilerFailed)
    (skip,) = seen.skips
    assert (skip.kind, skip.raised, skip.lost_ops) == ("raised", True, 2)
    assert skip.reason.startswith(
        "BackendCompilerFailed: backend='failing' raised: ValueError: no code for this"
    )
    assert seen.breaks == []
    assert seen.counts == (0, 1, 1)


def test_a_suppressed_error_runs_eagerly(see: Callable[..., Any]) -> None:
    with torch._dynamo.config.patch(suppress_errors=True):
        (skip,) = see(two_ops, torch.ones(3), backend=failing).skips
    assert (skip.kind, skip.raised, skip.lost_ops) == ("error", False, 2)


def test_an_error_of_the_program_is_no_break(see: Callable[..., Any]) -> None:
    def program(x):
        return x @ torch.ones(7, 7)

    seen = see(program, torch.ones(3, 3), raises=TorchRuntimeError)
    (skip,) = seen.skips
    assert (skip.kind, skip.raised, skip.lost_ops) == ("raised", True, None)
    assert skip.reason.startswith("RuntimeError when making fake tensor call")
    assert seen.breaks == []


def test_an_exception_that_leaves_the_function_is_a_break(see: Callable[..., Any]) -> None:
    def program(x):
        raise KeyError("mine")

    seen = see(program, torch.ones(3), raises=KeyError)
    assert (seen.only.id, seen.only.source) == ("gb0088", 'raise KeyError("mine")')


def test_a_backend_that_gives_a_graph_back(see: Callable[..., Any]) -> None:
    def unwilling(_module, _inputs):
        raise UnsupportedOperatorException(torch.ops.aten.sin.default)

    seen = see(two_ops, torch.ones(3), backend=unwilling)
    assert (seen.only.id, seen.only.skips_frame, seen.only.lost_ops) == ("gb0219", True, 2)
    assert (seen.only.file, seen.only.line) == (str(HERE), two_ops.__code__.co_firstlineno)
    assert seen.counts == (0, 1, 1)


def test_a_backend_that_asks_to_leave_a_frame_alone(see: Callable[..., Any]) -> None:
    def declining(_module, _inputs):
        raise SkipFrame("not this one")

    seen = see(two_ops, torch.ones(3), backend=declining)
    (skip,) = seen.skips
    assert (skip.kind, skip.raised, skip.lost_ops) == ("rule", False, 2)
    assert seen.counts == (0, 1, 1)


def test_a_function_that_asks_to_be_left_alone(see: Callable[..., Any]) -> None:
    def program(x):
        torch._dynamo.skip_frame()
        return x + 1

    (skip,) = see(program, torch.ones(3)).skips
    assert (skip.kind, skip.reason) == ("rule", "Call to `torch._dynamo.skip_frame()`")


def test_a_backward_graph_that_fails(watch: Callable[..., Any]) -> None:
    backend = aot_autograd(fw_compiler=lambda module, _: module, bw_compiler=failing)
    compiled = torch.compile(lambda x: (x * 2).sum(), backend=backend)
    seen = watch(lambda: compiled(torch.ones(3, requires_grad=True)).backward(), ValueError)
    (skip,) = seen.skips
    assert (skip.kind, skip.raised) == ("raised", True)
    assert skip.reason == "backward graph: ValueError: no code for this device"
    assert seen.counts.graphs == 1


def test_a_later_compilation_that_fails_leaves_the_earlier_graph(watch: Callable[..., Any]) -> None:
    def program(x, verbosely):
        y = x + 1
        if verbosely:
            for _ in range(2):
                print(end="")
        return y * 2

    compiled = torch.compile(program, backend="eager")

    def work():
        compiled(torch.ones(3), False)
        compiled(torch.ones(3), True)

    seen = watch(work)
    assert seen.counts == (1, 1, 1)
    assert seen.skips[0].compile_id == "0/1"
