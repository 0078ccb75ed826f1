"""Whose line a break is attributed to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.compiler.breaks.read import read_breaks
from pyrometer.compiler.stack import own_name, printed_stack
from pyrometer.compiler.user_code import own_place, own_stack
from pyrometer.place import Place
from pyrometer.source.ownership import owner_of

HERE = Path(__file__)

LIBRARY = """
def normalized(x):
    y = x - x.mean()
    print(end="")
    y = y / 2
    print(end="")
    return y
"""


@pytest.fixture
def library(tmp_path: Path) -> ModuleType:
    folder = tmp_path / "site-packages" / "somelib"
    folder.mkdir(parents=True)
    file = folder / "layers.py"
    file.write_text(dedent(LIBRARY), encoding="utf-8")
    module = ModuleType("somelib.layers")
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))
    return module


def test_a_break_in_a_library_belongs_to_the_users_line_that_called_it(
    library: ModuleType, see: Callable[..., Any]
) -> None:
    def program(x):
        y = x + 1
        return library.normalized(y) * 2

    first, second = see(program, torch.ones(3)).breaks
    for one in (first, second):
        assert Path(one.file) == HERE
        assert (one.function, one.source) == ("program", "return library.normalized(y) * 2")
    inside = [(Path(one.user_stack[-1].file).name, one.user_stack[-1].line) for one in (first, second)]
    assert inside == [("layers.py", 4), ("layers.py", 6)]


def test_without_a_line_of_the_users_a_library_line_is_shown() -> None:
    torch_file = "/v/lib/python3.12/site-packages/torch/nn/modules/module.py"
    library_file = "/v/lib/python3.12/site-packages/timm/layers.py"
    stack = [Place(file=library_file, line=3), Place(file=torch_file, line=9)]
    assert own_place(stack) == stack[0]
    assert own_place(stack[1:]) == stack[1]
    assert own_place([]) is None


def test_a_break_inside_torch_belongs_to_the_users_call(see: Callable[..., Any]) -> None:
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(2, 3)).sum().backward()

    def program():
        optimizer.step()

    seen = see(program)
    assert [(graph_break.id, graph_break.source, Path(graph_break.file)) for graph_break in seen.breaks] == [
        ("gb0025", "optimizer.step()", HERE)
    ]


def test_a_compiled_module_of_torchs_own_belongs_to_the_call(see: Callable[..., Any]) -> None:
    seen = see(torch.nn.LSTM(3, 3), torch.ones(2, 3, 3))
    assert (seen.only.id, seen.only.skips_frame) == ("gb0014", True)
    assert Path(seen.only.file) == HERE.with_name("conftest.py")
    assert Path(seen.skips[0].called_from[-1].file) == HERE.with_name("conftest.py")


def test_functions_behind_a_break_bear_the_users_name(programs: ModuleType, see: Callable[..., Any]) -> None:
    first, second = see(programs.nested, torch.ones(3)).breaks
    assert (first.function, second.function) == ("inner", "inner")
    assert [place.function for place in second.user_stack[-2:]] == ["nested", "inner"]
    assert not any("torch_dynamo_resume" in place.function for place in second.user_stack)


def test_a_decorated_function_is_found_inside_its_wrapper(see: Callable[..., Any]) -> None:
    def passed_on(function):
        @functools.wraps(function)
        def wrapper(*args, **options):
            return function(*args, **options)

        return wrapper

    @passed_on
    def program(x):
        y = x + 1
        print(end="")
        return y * 2

    assert see(program, torch.ones(3)).only.function == "program"


def test_the_stack_starts_at_the_users_outermost_line(see: Callable[..., Any]) -> None:
    def program(x):
        print(end="")
        return x * 2

    stack = see(program, torch.ones(3)).only.user_stack
    assert all(owner_of(place.file) == "user" for place in stack)
    assert all(place.source for place in stack if place.file != "<string>")  # pytest-xdist starts from such


def test_a_verbose_configuration_is_read_as_well(programs: ModuleType, see: Callable[..., Any]) -> None:
    plain = see(programs.nested, torch.ones(3)).breaks
    torch._dynamo.reset()
    with torch._dynamo.config.patch(verbose=True):
        verbose = see(programs.nested, torch.ones(3)).breaks
    assert [(one.id, one.line, one.function) for one in verbose] == [
        (one.id, one.line, one.function) for one in plain
    ]


def test_only_a_log_of_this_process_is_completed_from_the_files_that_lie_here(
    programs: ModuleType, see: Callable[..., Any]
) -> None:
    log = see(programs.print_between, torch.ones(3), fullgraph=True, raises=Exception).log
    without = msgspec.structs.replace  # records are immutable: copies are made
    errors = [entry for entry in log.entries if entry.kind == "dynamo_error"]
    assert errors
    entries = tuple(entry for entry in log.entries if entry.kind != "dynamo_error")
    live = read_breaks(type(log)(entries))
    from_file = read_breaks(type(log)(entries, source="trace.log"))
    assert [graph_break.source for graph_break in live] == ['print(end="")  # breaks: gb0059']
    assert [without(graph_break, user_stack=[]) for graph_break in from_file] == [
        without(graph_break, source="", user_stack=[]) for graph_break in live
    ]


def test_a_break_in_code_out_of_a_text_stands_there(see: Callable[..., Any]) -> None:
    made: dict[str, Any] = {}
    exec("def made(x):\n    y = x * 2\n    print(end='')\n    return y + 1\n", made)
    only = see(made["made"], torch.ones(3)).only
    assert (only.file, only.line, only.function, only.source) == ("<string>", 3, "made", "")


def test_library_frames_between_lines_of_the_users_are_left_out() -> None:
    mine, theirs = "/home/me/train.py", "/v/site-packages/trainer/loop.py"
    stack = [
        Place(file="/v/site-packages/_pytest/runner.py", line=1),
        Place(file=mine, line=2),
        Place(file=theirs, line=3),
        Place(file=mine, line=4),
        Place(file="/v/site-packages/torch/nn/modules/module.py", line=5),
        Place(file=theirs, line=6),
    ]
    assert [place.line for place in own_stack(stack)] == [2, 4, 6]


def test_a_function_and_the_rests_behind_its_breaks_are_one_frame() -> None:
    text = (
        '  File "m.py", line 3, in f\n    one()\n'
        '  File "m.py", line 5, in torch_dynamo_resume_in_f_at_3\n    two()\n'
        '  File "m.py", line 7, in torch_dynamo_resume_in_f_at_5\n    three(\n    ^^^^^^\n'
        '  File "m.py", line 1, in g\n'
    )
    assert [(place.line, place.function, place.source) for place in printed_stack(text)] == [
        (7, "f", "three("),
        (1, "g", None),
    ]


@given(name=st.text(alphabet="ab_<>1", min_size=1), lines=st.lists(st.integers(0, 999), max_size=3))
def test_names_are_mapped_back_however_often_a_function_broke(name: str, lines: list[int]) -> None:
    wrapped = functools.reduce(lambda inner, line: f"torch_dynamo_resume_in_{inner}_at_{line}", lines, name)
    assert own_name(wrapped) == name
