"""Calls that run eagerly in silence are found, with their guards; nothing stays behind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.private import cache_entries
from pyrometer.compiler.recompiles.read import read_limits
from pyrometer.compiler.recompiles.silent import GuardWatch


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.repeats = nn.Linear(4, 4), 1

    def forward(self, x: Tensor, offset: int = 1) -> Tensor:
        return self.linear(x) * self.repeats + offset


def _wrapped(module: Net) -> Any:
    return torch.compile(module, backend="eager", dynamic=False)


def _in_place(module: Net) -> Any:
    module.compile(backend="eager", dynamic=False)
    return module


def _method(module: Net) -> Any:
    return torch.compile(module.forward, backend="eager", dynamic=False)


def _step(module: Net) -> Any:
    def step(x: Tensor) -> Tensor:
        return module(x)

    return torch.compile(step, backend="eager", dynamic=False)


@pytest.mark.parametrize("compiled_as", [_wrapped, _in_place, _method, _step])
def test_eager_on_recompile_is_found_however_it_was_compiled(compiled_as: Callable[[Net], Any]) -> None:
    compiled = compiled_as(Net())
    compiled(torch.ones(2, 4))
    with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch:
        for _ in range(3):
            compiled(torch.ones(2, 4))
            compiled(torch.ones(3, 4))
    (silent,) = watch.silent()
    assert silent.calls == 3
    assert silent.failing == ["tensor 'x' size mismatch at index 0. expected 2, actual 3"]
    assert (watch.lookups, watch.misses, watch.unattributed) == (6, 3, 0)
    assert silent.file == __file__


def test_all_failing_guards_are_named_not_only_the_first() -> None:
    module = Net()
    compiled = _wrapped(module)
    compiled(torch.ones(2, 4))
    module.repeats = 5
    with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch, torch.no_grad():
        compiled(torch.ones(3, 4, dtype=torch.float32), offset=7)
    assert set(watch.silent()[0].failing) == {
        "GLOBAL_STATE changed: grad_mode",
        "offset == 1",
        "tensor 'x' size mismatch at index 0. expected 2, actual 3",
        "self.repeats == 1",
    }


def test_calls_after_the_recompile_limit_are_found_and_hits_are_not() -> None:
    compiled = _wrapped(Net())
    with torch._dynamo.config.patch(recompile_limit=2), collect() as collector:
        for n in range(2, 6):
            compiled(torch.ones(n, 4))
        with GuardWatch() as watch:
            compiled(torch.ones(2, 4))
            for n in range(6, 10):
                compiled(torch.ones(n, 4))
    assert [limit.function for limit in read_limits(collector.log())] == ["forward"]
    (silent,) = watch.silent()
    assert (silent.function, silent.line) == ("forward", Net.forward.__code__.co_firstlineno)
    assert silent.calls == 4
    assert silent.failing == ["tensor 'x' size mismatch at index 0. expected 2 or 3, actual 6 or 7 or 8 or 9"]


def test_compiling_is_not_silent() -> None:
    compiled = _wrapped(Net())
    with GuardWatch() as watch:
        compiled(torch.ones(2, 4))
        compiled(torch.ones(3, 4))
    assert watch.silent() == []
    assert watch.misses == 1


def test_the_rest_behind_a_break_is_found_under_its_function() -> None:
    def broken(x: Tensor, keep: list[int]) -> Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return y * keep[0]

    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(2), [2])
    with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch:
        compiled(torch.ones(2), [3])
    assert [(silent.function, silent.failing) for silent in watch.silent()] == [("broken", ["keep[0] == 2"])]


def test_results_are_as_without_the_watch() -> None:
    module = Net()
    compiled = _wrapped(module)
    x = torch.randn(2, 4, requires_grad=True)
    expected = module(x)
    with GuardWatch(measure=True):
        assert torch.equal(compiled(x), expected)
        compiled(x).sum().backward()
    assert x.grad is not None


def test_nothing_stays_behind_also_after_an_exception() -> None:
    compiled = _wrapped(Net())
    compiled(torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="reduction dim"), GuardWatch() as watch:
        compiled(torch.ones(2, 5))
    lookups = watch.lookups
    compiled(torch.ones(2, 4))
    assert watch.lookups == lookups
    assert sys.getprofile() is None
    assert torch._C._dynamo.eval_frame.set_guard_complete_hook(None) is None


def test_a_hook_that_was_there_keeps_its_say_and_its_place() -> None:
    eval_frame = torch._C._dynamo.eval_frame
    told: list[bool] = []

    def theirs(found: bool) -> bool:
        told.append(found)
        return found

    compiled = _wrapped(Net())
    compiled(torch.ones(2, 4))
    eval_frame.set_guard_complete_hook(theirs)
    try:
        with GuardWatch() as watch:
            compiled(torch.ones(2, 4))
        assert (told, watch.lookups) == ([True], 1)
    finally:
        assert eval_frame.set_guard_complete_hook(None) is theirs


def test_a_profiler_of_the_user_keeps_its_place_and_the_call_is_counted() -> None:
    compiled = _wrapped(Net())
    compiled(torch.ones(2, 4))

    def profiler(_frame: Any, _event: str, _argument: Any) -> None:
        """Do nothing."""

    with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch:
        sys.setprofile(profiler)
        try:
            compiled(torch.ones(3, 4))
            assert sys.getprofile() is profiler
        finally:
            sys.setprofile(None)
    assert watch.silent() == []
    assert watch.unattributed >= 1


def test_other_threads_are_watched_too() -> None:
    compiled = _wrapped(Net())
    compiled(torch.ones(2, 4))
    with torch.compiler.set_stance("eager_on_recompile"), GuardWatch() as watch:
        threads = [threading.Thread(target=compiled, args=(torch.ones(3, 4),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [silent.calls for silent in watch.silent()] == [4]


def test_guards_are_measured_for_each_compilation_that_is_used() -> None:
    module = Net()
    compiled = _wrapped(module)
    compiled(torch.ones(2, 4))
    compiled(torch.ones(3, 4))
    with GuardWatch(measure=True) as watch:
        compiled(torch.ones(2, 4))
        compiled(torch.ones(3, 4))
    assert set(watch.guard_s) == set(watch.slowest) == {"0/0", "0/1"}
    assert all(0 < seconds < 1e-3 for seconds in watch.guard_s.values())


def test_where_torch_does_not_tell_of_lookups_the_watch_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch._C._dynamo.eval_frame, "set_guard_complete_hook")
    with GuardWatch() as watch:
        pass
    assert any("lookups" in text for text in watch.unavailable)
    assert cache_entries.missing() == watch.unavailable
