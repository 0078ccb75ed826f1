"""Eager steps that compiled ones are compared with: nothing of torch.compile may be left in them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.compiler.inspection import running
from pyrometer.compiler.inspection.bare import BareProgram, original_of
from pyrometer.compiler.inspection.eager import EagerSession
from pyrometer.compiler.inspection.evaluation import evaluate_modes
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.errors import InputError
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference


def compiled(function: Any) -> Any:
    return torch.compile(function, backend="eager")


class WithMethod(nn.Module):
    """The pattern `model.forward = torch.compile(model.forward)`."""

    def __init__(self) -> None:
        super().__init__()
        self.forward = compiled(self.forward)  # type: ignore[method-assign]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def in_place() -> nn.Module:
    module = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
    module[1].compile(backend="eager")
    module.compile(backend="eager")
    return module


MODELS = {
    "wrapper": lambda: compiled(nn.Linear(3, 3)),
    "part": lambda: nn.Sequential(nn.ReLU(), compiled(nn.Linear(3, 3))),
    "part of a wrapper": lambda: compiled(nn.Sequential(nn.ReLU(), compiled(nn.Linear(3, 3)))),
    "in place": in_place,
    "method": WithMethod,
}


@pytest.mark.parametrize("name", MODELS)
def test_no_wrapper_is_left_of_a_model_and_all_are_back(name):
    model, x = MODELS[name](), torch.ones(2, 3)
    before = [(id(part), dict(vars(part)), dict(part._modules)) for part in model.modules()]
    with Inference(model, x).open() as session, Inference(model, x).open() as other:
        eager = EagerSession(session)

        assert eager.forcing_s() == 0.0
        assert torch.equal(eager.step(eager.prepare()), other.step(other.prepare()))
    after = [(id(part), dict(vars(part)), dict(part._modules)) for part in model.modules()]
    assert [each[0] for each in after] == [each[0] for each in before]
    assert all(
        new[2] == old[2] and new[1].get("forward") == old[1].get("forward")
        for new, old in zip(after, before, strict=True)
    )


def test_a_function_that_is_called_is_unwrapped():
    with Call(compiled(lambda x: x + 1), torch.ones(2)).open() as session:
        assert EagerSession(session).forcing_s() == 0.0


def test_wrappers_are_back_after_a_step_that_raises():
    def broken(x):
        raise ValueError(x)

    function = compiled(broken)
    with Call(function, torch.ones(2)).open() as session:
        eager = EagerSession(session)
        with pytest.raises(ValueError, match="tensor"):
            eager.step(None)
        assert session._function is function


def test_a_wrapper_out_of_reach_has_a_cost():
    function = compiled(lambda x: x * 2)
    with Call(lambda: function(torch.ones(3))).open() as session:
        assert EagerSession(session).forcing_s() > 0


def test_eager_steps_that_cannot_be_freed_of_wrappers_decide_nothing():
    function = compiled(lambda x: x * 2)
    report = inspect_compile(Call(lambda: function(torch.ones(3))), budget_s=0.3)

    assert report.cost.outcome == "undecided"
    assert (report.cost.eager_steady_s, report.cost.break_even_steps) == (None, None)
    assert (report.cost.ratio, report.cost.ci_low) == (None, None)
    assert any(note.startswith("not compared with eager") for note in report.notes)
    assert all(graph.break_even_calls is None for graph in report.runtime.graphs)


def test_a_forcing_that_is_small_beside_the_step_is_noted_and_compared(monkeypatch):
    monkeypatch.setattr(running, "MOST_FORCING", 1e6)
    function = compiled(lambda x: x * 2)
    report = inspect_compile(Call(lambda: function(torch.ones(3))), budget_s=0.2)

    assert report.cost.eager_steady_s is not None
    assert any("force_eager" in note for note in report.notes)


def test_a_tiny_function_that_is_slower_compiled_is_said_to_be_slower():
    report = inspect_compile(Call(compiled(lambda x: x * 2), torch.ones(3)), budget_s=1.0)

    assert report.cost.outcome == "slower"
    assert report.cost.eager_steady_s < report.cost.steady_s
    assert report.cost.break_even_steps is None


def test_copies_of_a_wrappers_attributes_are_no_wrappers():
    import functools

    def plain(value):
        return value

    function = compiled(plain)

    @functools.wraps(function)
    def around(value):
        return function(value)

    assert original_of(around) is around
    assert original_of(function) is plain


def test_a_session_without_modules_has_nothing_to_take_off():
    with Call(len, [1]).open() as session:
        bare = BareProgram(session)
        bare.take_off()
        assert session.step(None) == 1
        bare.put_back()


def test_modes_are_not_compared_with_a_reference_that_is_compiled_itself():
    function = compiled(lambda x: x * 2)
    with pytest.raises(InputError, match="makes 1 call through"):
        evaluate_modes(Call(lambda: function(torch.ones(3))), [], mode_s=0.05)


def test_scripted_modules_have_nothing_to_take_off():
    with Inference(torch.jit.trace(nn.Linear(3, 3), torch.ones(3)), torch.ones(3)).open() as session:
        assert EagerSession(session).forcing_s() == 0.0


def test_a_program_that_fails_compiled_has_no_eager_time_where_wrappers_are_left():
    def broken(_graph, _inputs):
        raise ValueError("no")

    function = torch.compile(lambda x: x * 2, backend=broken)
    report = inspect_compile(Call(lambda: function(torch.ones(3))), budget_s=0.1)

    assert report.cost.eager_steady_s is None
    assert any("eagerly it runs" in note for note in report.notes)
