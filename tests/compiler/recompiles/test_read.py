"""Recompilations: each cause has its kind and all its failing guards, each input its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.recompiles.read import read_limits, read_recompiles
from pyrometer.compiler.recompiles.record import Recompile
from pyrometer.record import from_json, to_json

LogOf = Callable[..., CompileLog]
Call = Callable[[Any], object]


class Scaled(nn.Module):
    """A module with every kind of attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)
        self.repeats = 1
        self.scale = 1.5
        self.mode = "plain"

    def forward(self, x: Tensor) -> Tensor:
        y = self.dropout(self.linear(x)) * self.repeats * self.scale
        return y + 1 if self.mode == "plain" else y


def plus(x: Tensor, other: Any = None) -> Tensor:
    if other is None:
        return x + 1
    return other(x) if callable(other) else x + other


def total(x: Tensor, items: Any) -> Tensor:
    for item in items.values() if isinstance(items, dict) else items:
        x = x + item
    return x


def only(log: CompileLog) -> Recompile:
    recompiles = read_recompiles(log)
    assert len(recompiles) == 1
    return recompiles[0]


def change(recompile: Recompile, name: str) -> tuple[str, list[str], str]:
    """Kind, earlier values and the new one of an input."""
    changed_input = next(changed for changed in recompile.changed_inputs if changed.name == name)
    return changed_input.kind, changed_input.before, changed_input.after


def ones(*shape: int, **options: Any) -> Tensor:
    return torch.ones(*shape, **options)


@pytest.mark.parametrize(
    ("second", "guard", "expected"),
    [
        (ones(3, 4), "size mismatch at index 0. expected 2, actual 3", ("x, dimension 0", "size", "2", "3")),
        (ones(4, 2).t(), "stride mismatch at index 0. expected 4, actual 1", ("x, stride of dimension 0", "stride", "4", "1")),
        (ones(2, 4, dtype=torch.float64), "dtype mismatch. expected Float, actual Double", ("x, dtype", "dtype", "torch.float32", "torch.float64")),
        (ones(2, 4, requires_grad=True), "requires_grad mismatch. expected requires_grad=0", ("x, requires_grad", "requires_grad", "False", "True")),
        (ones(2, 4, 1), "rank mismatch. expected 2, actual 3", ("x, number of dimensions", "rank", "2", "3")),
    ],
)  # fmt: skip
def test_a_tensor_that_differs_is_told_by_what_differs(
    log_of: LogOf, second: Tensor, guard: str, expected: tuple[str, str, str, str]
) -> None:
    name, kind, before, after = expected
    recompile = only(log_of(plus, [lambda c: c(ones(2, 4)), lambda c: c(second)]))
    (cause,) = recompile.causes
    assert (cause.entry, cause.kind, cause.guard) == ("0/0", kind, f"tensor 'x' {guard}")
    assert cause.guard == cause.all_failing[0]
    assert change(recompile, name) == (kind, [before], after)


def test_a_recompilation_says_which_function_was_called_from_where_and_how_long_it_took(
    log_of: LogOf,
) -> None:
    recompile = only(log_of(plus, [lambda c: c(ones(2)), lambda c: c(ones(3))]))
    assert (recompile.function, recompile.file) == ("plus", __file__)
    assert recompile.line == plus.__code__.co_firstlineno
    assert recompile.called_from[-1].file == __file__
    assert "c(ones(3))" in recompile.called_from[-1].source
    assert all("torch/_dynamo" not in place.file for place in recompile.called_from)


def test_the_last_caller_is_the_program_even_where_no_size_is_opened(log_of: LogOf) -> None:
    recompile = only(log_of(plus, [lambda c: c(ones(2)), lambda c: c(ones(2, dtype=torch.float64))]))
    assert recompile.called_from[-1].file == __file__
    assert "c(ones(2, dtype=torch.float64))" in recompile.called_from[-1].source
    assert recompile.compile_s is not None
    assert 0 < recompile.compile_s < 60


@pytest.mark.parametrize(
    ("attribute", "value", "before"), [("repeats", 2, "1"), ("scale", 2.5, "1.5"), ("mode", "other", "'plain'")]
)  # fmt: skip
def test_attributes_of_a_module(log_of: LogOf, attribute: str, value: object, before: str) -> None:
    module = Scaled()
    log = log_of(
        module, [lambda c: c(ones(2, 4)), lambda c: (setattr(module, attribute, value), c(ones(2, 4)))]
    )
    recompile = only(log)
    assert recompile.causes[0].all_failing == [f"self.{attribute} == {before}"]
    assert change(recompile, f"self.{attribute}") == ("attribute", [before], repr(value))
    place = recompile.causes[0].place
    assert place is not None
    assert (place.file, place.function) == (__file__, "forward")
    assert f"self.{attribute}" in place.source


def test_training_flag(log_of: LogOf) -> None:
    module = Scaled()
    recompile = only(log_of(module, [lambda c: c(ones(2, 4)), lambda c: (module.eval(), c(ones(2, 4)))]))
    assert [cause.kind for cause in recompile.causes] == ["training"]
    assert change(recompile, "self.dropout.training") == ("training", ["True"], "False")


@pytest.mark.parametrize(("first", "second"), [(2, 3), ("a", "b"), (True, False)])
def test_python_arguments(log_of: LogOf, first: object, second: object) -> None:
    def pick(x: Tensor, choice: Any) -> Tensor:
        return (
            x + 1
            if choice == "a" or choice is True
            else x + 2
            if isinstance(choice, (str, bool))
            else x * choice
        )

    recompile = only(log_of(pick, [lambda c: c(ones(2), first), lambda c: c(ones(2), second)]))
    assert change(recompile, "choice") == ("value", [repr(first)], repr(second))


def test_a_tensor_in_place_of_none_and_back(log_of: LogOf) -> None:
    first, second = (
        only(log_of(plus, [lambda c, o=o: c(ones(2), o) for o in others]))
        for others in ([None, ones(2)], [ones(2), None])
        if not torch._dynamo.reset()
    )
    assert first.causes[0].all_failing == ["other is None"]
    assert change(first, "other") == ("value", ["None"], "a value of type torch.Tensor")
    assert second.causes[0].kind == "type"
    assert change(second, "type of other") == ("type", ["torch.Tensor"], "NoneType")


def test_another_function_as_argument(log_of: LogOf) -> None:
    recompile = only(log_of(plus, [lambda c: c(ones(2), torch.sin), lambda c: c(ones(2), torch.cos)]))
    assert recompile.causes[0].kind == "identity"
    assert change(recompile, "other") == ("identity", ["object 1"], "object 2")


def test_a_number_of_another_type(log_of: LogOf) -> None:
    calls = [lambda c, value=value: c(ones(2), value) for value in (2, 3, 1.5)]
    recompile = read_recompiles(log_of(plus, calls))[-1]
    assert recompile.causes[0].kind == "type"
    assert change(recompile, "type of other") == ("type", ["int"], "float")


def test_length_of_a_list(log_of: LogOf) -> None:
    recompile = only(log_of(total, [lambda c: c(ones(2), [1.0]), lambda c: c(ones(2), [1.0, 2.0])]))
    assert recompile.causes[0].all_failing == ["len(items) == 1"]
    assert change(recompile, "length of items") == ("length", ["1"], "2")


def test_keys_of_a_dict(log_of: LogOf) -> None:
    recompile = only(log_of(total, [lambda c: c(ones(2), {"a": 1.0}), lambda c: c(ones(2), {"b": 1.0})]))
    assert recompile.causes[0].kind == "keys"
    assert change(recompile, "key 0 of items") == ("keys", ["'a'"], "'b'")


def _without_grad(compiled: Any) -> None:
    with torch.no_grad():
        compiled(ones(2))


def _with_autocast(compiled: Any) -> None:
    with torch.autocast("cpu"):
        compiled(ones(2))


def _with_default_double(compiled: Any) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        compiled(torch.ones(2, dtype=torch.float32))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("call", "name", "before", "after"),
    [
        (_without_grad, "grad mode", "true", "false"),
        (_with_autocast, "autocast(cpu) enabled", "false", "true"),
        (_with_default_double, "default dtype", "float32", "float64"),
    ],
)
def test_global_state(log_of: LogOf, call: Callable[[Any], None], name: str, before: str, after: str) -> None:
    recompile = only(log_of(plus, [lambda c: c(ones(2)), call]))
    assert recompile.causes[0].kind == "global_state"
    assert change(recompile, name) == ("global_state", [before], after)


def test_tensors_that_become_one_object(log_of: LogOf) -> None:
    def add_in_place(x: Tensor, y: Tensor) -> Tensor:
        return x.add_(1) + y

    both = ones(3)
    recompile = only(log_of(add_in_place, [lambda c: c(ones(3), ones(3)), lambda c: c(both, both)]))
    assert recompile.causes[0].kind == "aliasing"


def test_all_guards_that_fail_at_once_are_listed_not_only_the_first(log_of: LogOf) -> None:
    def product(a: Tensor, b: int, c: int, d: int, e: int) -> Tensor:
        return a * b * c * d * e

    recompile = only(
        log_of(product, [lambda f: f(ones(1, 2), 1, 1, 1, 1), lambda f: f(ones(10, 20), 5, 5, 5, 5)])
    )
    assert recompile.causes[0].all_failing == [
        "tensor 'a' size mismatch at index 0. expected 1, actual 10",
        "tensor 'a' size mismatch at index 1. expected 2, actual 20",
        "tensor 'a' stride mismatch at index 0. expected 2, actual 20",
        "b == 1",
        "c == 1",
        "d == 1",
        "e == 1",
    ]
    assert all(changed.became_dynamic for changed in recompile.changed_inputs)


def test_each_earlier_compilation_is_a_cause_and_an_input_has_all_its_values(log_of: LogOf) -> None:
    log = log_of(plus, [lambda c, n=n: c(ones(n)) for n in (2, 3, 5)], dynamic=False)
    last = read_recompiles(log)[-1]
    assert {cause.entry for cause in last.causes} == {"0/0", "0/1"}
    assert change(last, "x, dimension 0") == ("size", ["2", "3"], "5")
    assert not last.changed_inputs[0].became_dynamic


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.repeats = 1.0, 3

    def forward(self, x: Tensor, flag: bool = False) -> Tensor:
        y = x + 1 if flag else x
        return y * self.scale + self.repeats


def test_only_values_that_no_earlier_compilation_had_are_changes(log_of: LogOf) -> None:
    module = Block()

    def after(name: str, value: object) -> Call:
        return lambda c: (setattr(module, name, value), c(ones(4, 8)))

    calls = [*(lambda c, n=n: c(ones(n, 8)) for n in (2, 3)), after("scale", 2.0), after("repeats", 4)]
    calls += [lambda c: c(ones(4, 8), True), lambda c: c(ones(8, 4).t())]
    found = [
        [(changed.name, changed.after) for changed in recompile.changed_inputs]
        for recompile in read_recompiles(log_of(module, calls))
    ]
    assert found == [
        [("x, dimension 0", "3")],
        [("self.scale", "2.0")],
        [("self.repeats", "4")],
        [("flag", "True")],
        [("x, stride of dimension 0", "1"), ("x, stride of dimension 1", "4")],
    ]


def test_of_values_that_were_met_one_by_one_those_count_that_differ_from_the_nearest(log_of: LogOf) -> None:
    def chosen(x: Tensor, a: str, b: str, c: str) -> Tensor:
        return x + len(a) * len(b) * len(c)

    calls = [
        lambda f, t=t: f(ones(2), *t)
        for t in (("m", "m", "m"), ("n", "n", "m"), ("n", "n", "n"), ("m", "m", "n"))
    ]
    last = read_recompiles(log_of(chosen, calls))[-1]
    assert [(changed.name, changed.before, changed.after) for changed in last.changed_inputs] == [
        ("c", ["'m'"], "'n'")
    ]


def test_a_size_that_torch_opens_became_dynamic_and_a_later_bound_is_the_failing_guard(log_of: LogOf) -> None:
    def halves(x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 3 else x - 1

    first, second = read_recompiles(log_of(halves, [lambda c, n=n: c(ones(n)) for n in (2, 3, 5)]))
    assert first.changed_inputs[0].became_dynamic
    by_entry = {cause.entry: cause for cause in second.causes}
    assert by_entry["0/1"].guard == "2 <= x.size()[0] <= 3"
    assert by_entry["0/1"].kind == "size"
    place = by_entry["0/1"].place
    assert place is not None
    assert "x.shape[0] > 3" in place.source


def test_a_size_that_the_program_fixes_did_not_become_dynamic(log_of: LogOf) -> None:
    def seven(x: Tensor) -> Tensor:
        return x + 1 if x.shape[0] == 7 else x - 1

    recompile = only(log_of(seven, [lambda c: c(ones(5)), lambda c: c(ones(7))]))
    assert change(recompile, "x, dimension 0") == ("size", ["5"], "7")
    assert not recompile.changed_inputs[0].became_dynamic


def test_a_mark_on_a_tensor_that_was_compiled_without(log_of: LogOf) -> None:
    def marked(n: int) -> Tensor:
        x = ones(n)
        torch._dynamo.mark_dynamic(x, 0)
        return x

    recompile = only(log_of(plus, [lambda c: c(ones(5)), lambda c: c(marked(5)), lambda c: c(marked(6))]))
    assert recompile.causes[0].kind == "marking"


def test_guards_that_hold_are_no_failures(log_of: LogOf) -> None:
    """Only the new value fails, although the later compilation has other guards on everything behind the branch."""

    def branches(x: Tensor, flag: bool, k: int, m: int) -> Tensor:
        return x * k if flag else x * m

    recompile = only(log_of(branches, [lambda c: c(ones(2), True, 2, 3), lambda c: c(ones(2), False, 2, 3)]))
    assert recompile.causes[0].all_failing == ["flag == True"]


def test_after_a_break_the_rest_is_the_function_itself(log_of: LogOf) -> None:
    def broken(x: Tensor) -> Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    recompiles = read_recompiles(log_of(broken, [lambda c: c(ones(2)), lambda c: c(ones(2, 2))]))
    assert [recompile.function for recompile in recompiles] == ["broken", "broken"]
    assert [recompile.compile_id for recompile in recompiles] == ["0/1", "1/1"]
    assert all(recompile.called_from[-1].function != "broken" for recompile in recompiles)


def test_compiled_functions_that_call_compiled_functions(log_of: LogOf) -> None:
    inner = torch.compile(lambda x: x + 1, backend="eager")

    def outer(x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return inner(x) * 2

    recompiles = read_recompiles(log_of(outer, [lambda c: c(ones(2)), lambda c: c(ones(2, 2))]))
    assert recompiles
    assert all(cause.kind == "rank" for recompile in recompiles for cause in recompile.causes)


def test_after_a_reset_the_first_compilation_is_no_recompilation(log_of: LogOf) -> None:
    log = log_of(
        plus,
        [lambda c: c(ones(2)), lambda _: torch._dynamo.reset(), lambda c: c(ones(3)), lambda c: c(ones(4))],
    )
    (recompile,) = read_recompiles(log)
    assert recompile.compile_id == "r1:0/1"
    assert [cause.entry for cause in recompile.causes] == ["r1:0/0"]
    assert change(recompile, "x, dimension 0") == ("size", ["3"], "4")


def test_a_log_that_begins_late_still_tells_what_torch_reported(log_of: LogOf) -> None:
    compiled = torch.compile(plus, backend="eager", dynamic=False)
    compiled(ones(2))
    recompile = only(log_of(plus, [lambda _: compiled(ones(3))]))
    assert recompile.causes[0].all_failing == ["tensor 'x' size mismatch at index 0. expected 2, actual 3"]
    assert change(recompile, "x, dimension 0") == ("size", ["2"], "3")


def test_the_limit_is_told_with_the_reasons_and_is_no_recompilation(log_of: LogOf) -> None:
    def chosen(x: Tensor, name: str) -> Tensor:
        return x + 1 if name == "a" else x - 1

    with torch._dynamo.config.patch(recompile_limit=3):
        log = log_of(chosen, [lambda c, n=n: c(ones(2), str(n)) for n in range(6)])
    (limit,) = read_limits(log)
    assert (limit.function, limit.line, limit.limit) == ("chosen", chosen.__code__.co_firstlineno, 3)
    assert limit.reason == "recompile_limit reached; the last guard that failed: name == '2'"
    assert [cause.guard for cause in limit.causes] == ["name == '2'", "name == '1'", "name == '0'"]
    assert [recompile.compile_id for recompile in read_recompiles(log)] == ["0/1", "0/2"]


def test_the_accumulated_limit_is_a_limit_too(log_of: LogOf) -> None:
    with torch._dynamo.config.patch(accumulated_recompile_limit=2):
        log = log_of(plus, [lambda c, n=n: c(ones(n)) for n in range(2, 6)], dynamic=False)
    assert read_limits(log)[0].limit == 2
    assert read_limits(log)[0].reason.startswith("accumulated_recompile_limit reached")


def test_with_fullgraph_the_limit_raises_and_is_told(log_of: LogOf) -> None:
    def calls(compiled: Any) -> None:
        compiled(ones(2))
        compiled(ones(3))
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="fullgraph"):
            compiled(ones(4))

    with torch._dynamo.config.patch(recompile_limit=2):
        log = log_of(plus, [calls], dynamic=False, fullgraph=True)
    (limit,) = read_limits(log)
    assert limit.function == "plus"


def test_nothing_compiled_twice_gives_nothing(log_of: LogOf) -> None:
    log = log_of(plus, [lambda c: c(ones(2)), lambda c: c(ones(2))])
    assert read_recompiles(log) == []
    assert read_limits(log) == []
    assert read_recompiles(CompileLog(())) == []


def test_records_survive_json(log_of: LogOf) -> None:
    recompile = only(log_of(plus, [lambda c: c(ones(2)), lambda c: c(ones(3))]))
    assert from_json(Recompile, to_json(recompile)) == recompile
