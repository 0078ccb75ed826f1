"""The compilations that torch holds: listed, asked without compiling, and timed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import cache_entries
from pyrometer.compiler.recompiles.live import failing_guards


def scaled(x: Tensor, k: int = 2) -> Tensor:
    return x * k


def _locals(x: Tensor, k: int = 2) -> dict[str, Any]:
    return {"x": x, "k": k}


def test_a_function_lists_its_compilations_under_torch_s_ids() -> None:
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    with collect() as collector:
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    entries = cache_entries.entries_of(scaled.__code__)
    texts = {number.text for number in collector.log().compile_ids()}
    assert {entry.compile_id for entry in entries} == {"0/0", "0/1"} <= texts
    assert scaled.__code__ in cache_entries.compiled_codes()


def test_a_function_that_was_never_compiled_has_none() -> None:
    assert cache_entries.entries_of(_locals.__code__) == []


def test_asking_compiles_nothing() -> None:
    torch.compile(scaled, backend="eager", dynamic=False)(torch.ones(2))
    (entry,) = cache_entries.entries_of(scaled.__code__)
    assert entry.fits(_locals(torch.ones(2)))
    assert entry.first_failing(_locals(torch.ones(2))) is None
    assert not entry.fits(_locals(torch.ones(3)))
    first = entry.first_failing(_locals(torch.ones(3)))
    assert first == "tensor 'L['x']' size mismatch at index 0. expected 2, actual 3"
    assert len(cache_entries.entries_of(scaled.__code__)) == 1


def test_an_argument_that_is_no_tensor_any_more() -> None:
    torch.compile(scaled, backend="eager", dynamic=False)(torch.ones(2))
    (entry,) = cache_entries.entries_of(scaled.__code__)
    assert failing_guards(entry, {"x": 5, "k": 3}) == [
        "k == 2",
        "expected type of 'x' to be a tensor type, ' but found <class 'int'>",
    ]


def test_asking_leaves_the_guards_as_they_are() -> None:
    """Relations between tensors are not asked by themselves: that would leave half a state behind."""
    torch.compile(lambda x, y: x + y, backend="eager", dynamic=False)(torch.ones(2), torch.ones(2))
    (code,) = (code for code in cache_entries.compiled_codes() if cache_entries.entries_of(code))
    (entry,) = cache_entries.entries_of(code)
    one, other = torch.ones(2), torch.ones(2)
    for _ in range(3):
        assert failing_guards(entry, {"x": one, "y": other}) == []
        assert failing_guards(entry, {"x": one, "y": one}) != []


@pytest.mark.exhaustive
def test_guards_are_timed_in_seconds_and_more_guards_cost_more() -> None:
    def sums(items: list[Tensor]) -> Tensor:
        return sum(items[1:], items[0])

    compiled = torch.compile(sums, backend="eager")
    few, many = ([torch.ones(2) for _ in range(count)] for count in (2, 200))
    compiled(few)
    compiled(many)
    by_length = {
        len(items): entry
        for entry in cache_entries.entries_of(sums.__code__)
        for items in (few, many)
        if entry.fits({"items": items})
    }
    cost = {
        n: cache_entries.guard_eval_seconds(by_length[n], {"items": items})
        for n, items in ((2, few), (200, many))
    }
    assert 0 < cost[2] < cost[200] < 1e-2
    slowest = cache_entries.slowest_guards(by_length[200], {"items": many})
    assert slowest[0][0] == "L['items']"
    assert slowest[0][1] > 0


def test_this_torch_has_all_of_it() -> None:
    assert cache_entries.missing() == []
