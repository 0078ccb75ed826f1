"""What was compiled before a recording is told to be missing from it."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn

from pyrometer.compiler.budget import CompileBudget, check_budget
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.observe import observe_compile
from pyrometer.compiler.private import cache_entries
from pyrometer.workload.inference import Inference


class Breaking(nn.Module):
    """One break; a second instance shares the first half of the code that was compiled for the first."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + self.factor
        return x * 2


class Looping(nn.Module):
    """A break in a loop: the frame is given up, and nothing of it is ever looked up."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x


class Guarded(nn.Module):
    """A break within a context manager of the standard library, at whose methods Dynamo glances."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        with contextlib.nullcontext():
            torch._dynamo.graph_break()
        return x + 1


class Around(nn.Module):
    """Eager code around a compiled part."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with contextlib.nullcontext():
            return self.part(x)


class Sized(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


PLACE = f"test_earlier.py:{Breaking.forward.__code__.co_firstlineno} forward"


def inspected(model: nn.Module):
    return inspect_compile(Inference(model, torch.ones(3)), budget_s=0.1, strict=True)


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager", dynamic=False)


def test_a_fresh_recording_misses_nothing():
    report = inspected(compiled(Breaking(1)))

    assert report.incomplete == []
    assert (report.graphs, len(report.breaks)) == (2, 1)


def test_a_second_inspection_of_a_model_is_incomplete_and_keeps_no_budget():
    model = compiled(Breaking(1))
    inspected(model)
    report = inspected(model)

    assert report.graphs == 0
    assert PLACE in report.incomplete
    assert any(note.startswith("compiled before the recording began") for note in report.notes)
    (sentence,) = check_budget(report, CompileBudget(max_graph_breaks=0, max_graphs=0))
    assert sentence.startswith("cannot be told: ")
    assert PLACE in sentence


def test_a_context_manager_that_another_program_entered_is_not_missed():
    compiled(Guarded())(torch.ones(3))
    assert contextlib.nullcontext.__enter__.__code__ in cache_entries.compiled_codes()

    assert inspected(Around(compiled(Sized()))).incomplete == []


@pytest.mark.slow
def test_a_second_instance_of_a_class_is_incomplete():
    inspected(compiled(Breaking(1)))
    report = inspected(compiled(Breaking(2)))

    assert report.incomplete == [PLACE]


@pytest.mark.exhaustive
def test_a_function_that_was_given_up_before_is_told():
    model = compiled(Looping())
    inspected(model)

    assert any("forward" in name for name in inspected(model).incomplete)


@pytest.mark.exhaustive
def test_another_program_is_complete():
    inspected(compiled(Breaking(1)))

    assert inspected(compiled(Sized())).incomplete == []


@pytest.mark.exhaustive
def test_after_a_reset_nothing_is_missing():
    model = compiled(Breaking(1))
    inspected(model)
    torch._dynamo.reset()

    assert inspected(model).incomplete == []


def test_observing_tells_what_was_compiled_before():
    model, other = compiled(Breaking(1)), compiled(Sized())
    model(torch.ones(3))
    other(torch.ones(3))
    with observe_compile() as seen:
        model(torch.ones(3))

    assert PLACE in seen.report().incomplete
    assert len(seen.report().incomplete) == 2
    assert check_budget(seen.report(), CompileBudget(max_graphs=0))


@pytest.mark.slow
@pytest.mark.parametrize("stance", ["default", "eager_on_recompile"])
def test_observing_tells_of_calls_that_run_eagerly_in_silence(stance):
    model = compiled(Sized())
    for size in range(2, 14):
        model(torch.ones(size))
    with torch.compiler.set_stance(stance), observe_compile() as seen:
        model(torch.ones(20))
        model(torch.ones(21))
    report = seen.report()

    assert [silent.calls for silent in report.runtime.silent_eager] == [2]
    assert report.runtime.num_steps == 0
    assert check_budget(report, CompileBudget(max_graphs=5))
    assert any("ran eagerly in silence" in note for note in report.notes)


def test_observing_what_runs_compiled_has_no_runtime():
    with observe_compile() as seen:
        compiled(Sized())(torch.ones(2))

    assert seen.report().runtime is None
    assert seen.report().incomplete == []


@pytest.mark.exhaustive
def test_a_program_behind_its_limit_is_not_said_to_be_switched_off():
    model = compiled(Sized())
    with torch.inference_mode():
        for size in range(2, 14):
            model.eval()(torch.ones(size))
    report = inspect_compile(Inference(model, lambda: torch.ones(30)), budget_s=0.1)

    (note,) = [note for note in report.notes if note.startswith("nothing was compiled")]
    assert "ran eagerly in silence" in note
    assert "TORCH_COMPILE_DISABLE" not in note
    assert check_budget(report, CompileBudget(max_skipped_frames=0))
