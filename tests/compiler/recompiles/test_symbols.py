"""Open sizes: where they come from, what constrains them, and the line that fixed one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pyrometer.compiler.log import CompileLog, LogEntry
from pyrometer.compiler.recompiles.symbols import read_symbols

LogOf = Callable[..., CompileLog]


def marked(*shape: int) -> Tensor:
    x = torch.ones(*shape)
    torch._dynamo.mark_dynamic(x, 0)
    return x


def test_a_marked_size_is_a_symbol_with_its_source_and_first_value(log_of: LogOf) -> None:
    (size,) = read_symbols(log_of(lambda x: x + 1, [lambda c: c(marked(5, 2))]))
    assert (size.compile_id, size.source, size.value) == ("0/0", "L['x'].size()[0]", "5")
    assert size.range.startswith("[2,")
    assert (size.specialized_to, size.constraints, size.place) == (None, [], None)


def test_a_size_that_the_program_fixes_names_the_line(log_of: LogOf) -> None:
    def seven(x: Tensor) -> Tensor:
        y = x + 1
        return y * 2 if x.shape[0] == 7 else y

    (size,) = read_symbols(log_of(seven, [lambda c: c(torch.ones(5)), lambda c: c(torch.ones(7))]))
    assert size.specialized_to == "7"
    assert size.constraints == [f"Eq({size.symbol}, 7)"]
    assert size.place is not None
    assert (size.place.file, size.place.function) == (__file__, "seven")
    assert "x.shape[0] == 7" in size.place.source


def test_a_bound_names_its_line_and_fixes_nothing(log_of: LogOf) -> None:
    def halves(x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 3 else x + 1

    (size,) = read_symbols(log_of(halves, [lambda c: c(marked(5))]))
    assert size.specialized_to is None
    assert size.constraints == [f"{size.symbol} > 3"]
    assert size.place is not None
    assert "x.shape[0] > 3" in size.place.source


def test_two_sizes_that_must_agree_both_have_the_constraint(log_of: LogOf) -> None:
    sizes = read_symbols(log_of(lambda x, y: x + y, [lambda c: c(marked(5), marked(5))]))
    assert {size.source for size in sizes} == {"L['x'].size()[0]", "L['y'].size()[0]"}
    assert all(len(size.constraints) == 1 and size.constraints[0].startswith("Eq(") for size in sizes)


def test_an_attempt_that_was_given_up_leaves_no_symbols(log_of: LogOf) -> None:
    def broken(x: Tensor) -> Tensor:
        y = x + x.shape[0]
        torch._dynamo.graph_break()
        return y * 2

    sizes = read_symbols(log_of(broken, [lambda c: c(marked(5))]))
    keys = [(size.compile_id, size.symbol) for size in sizes]
    assert len(keys) == len(set(keys))
    assert ("0/0", "L['x'].size()[0]") in [(size.compile_id, size.source) for size in sizes]


def test_entries_of_unknown_shape_are_passed_over() -> None:
    entries = [
        LogEntry("create_symbol", "text"),
        LogEntry("guard_added_fast", None),
        LogEntry("create_symbol", {}),
    ]
    assert read_symbols(CompileLog(tuple(entries))) == []
