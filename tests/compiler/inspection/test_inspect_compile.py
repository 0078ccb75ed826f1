from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pyrometer.compiler.collecting import collector
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import InputError, UserProgramError
from pyrometer.record import from_json, to_json
from pyrometer.workload.call import Call
from pyrometer.workload.inference import Inference
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Workload

WIDTH = 16


def load_states() -> Any:
    """The functions beside the fixtures."""
    spec = importlib.util.spec_from_file_location(
        "inspecting_states", Path(__file__).with_name("conftest.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


states = load_states()


def inspect(work: Workload, **settings: Any) -> CompileReport:
    return inspect_compile(work, **{"budget_s": 0.02, "strict": True, "steps": 4} | settings)


def training(model: nn.Module, batches: Any = None, **settings: Any) -> Training:
    batches = batches or [(torch.randn(4, WIDTH), torch.randn(4, 1))]
    return Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), lr=0.01), batches, **settings)


@pytest.fixture(scope="module")
def broken() -> tuple[CompileReport, list[str]]:
    """What is found of a model with one break, and what was told meanwhile."""
    told: list[str] = []
    torch._dynamo.reset()
    work = Inference(torch.compile(states.Branching(), backend="aot_eager"), torch.randn(4, WIDTH))
    return inspect(work, progress=lambda _share, what: told.append(what)), told


@pytest.fixture(scope="module")
def imported() -> None:
    """The compiler changes its own settings while it is imported, once."""
    inspect(Inference(torch.compile(nn.Linear(2, 2), backend="eager"), torch.randn(2, 2)))


def test_a_break_gives_two_graphs_with_costs_numerics_and_runtime(broken):
    report, _ = broken

    assert (report.graphs, len(report.breaks), report.skipped_frames) == (2, 1, 0)
    assert report.breaks[0].id is not None
    assert report.breaks[0].file == states.Branching.forward.__code__.co_filename
    assert report.cost.first_call_s > report.cost.steady_s > 0
    assert report.cost.eager_steady_s > 0
    assert 0 < report.cost.compile_s <= report.cost.first_call_s
    assert report.error is not None
    assert report.error.within_tolerance
    assert report.runtime is not None
    assert [graph.calls_per_step for graph in report.runtime.graphs] == [1, 1]
    assert sum(graph.share for graph in report.runtime.graphs) == pytest.approx(1)
    assert report.runtime.verdict is not None
    assert report.cost.dispatch_s == pytest.approx(report.runtime.lookup_s + report.runtime.wrapper_s)


def test_a_plain_model_is_put_behind_torch_compile_and_that_is_said(straight, batch, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, mode: real(model, backend="eager"))
    report = inspect(Inference(straight, batch))

    assert report.graphs == 1
    assert not report.as_written
    assert any("compiles nothing as it is written" in note for note in report.notes)


real = torch.compile


def test_a_model_compiled_in_place_is_taken_as_it_is(straight, batch):
    straight.compile(backend="eager")
    report = inspect(Inference(straight, batch))

    assert report.as_written
    assert report.graphs == 1
    assert report.cost.eager_steady_s is not None
    assert not any("force_eager" in note for note in report.notes)


@pytest.mark.exhaustive
def test_parts_that_are_compiled_are_each_a_frame(straight, batch):
    model = nn.Sequential(
        torch.compile(nn.Linear(WIDTH, WIDTH), backend="eager"), torch.compile(straight, backend="eager")
    )
    report = inspect(Inference(model, batch))

    assert report.graphs == 2
    assert not report.breaks


def test_a_compiled_function_that_is_called_within_is_found(batch):
    inner = torch.compile(lambda x: torch.relu(x) * 2, backend="eager")
    report = inspect(Call(lambda: inner(batch).sum()))

    assert report.graphs == 1
    assert report.runtime.verdict is not None
    assert not any("as it is written" in note for note in report.notes)


@pytest.mark.exhaustive
def test_nested_compiled_functions_are_told_apart(batch):
    inner = torch.compile(lambda x: torch.sin(x) + 1, backend="eager")

    def outer(x):
        y = x * 2
        torch._dynamo.graph_break()
        return inner(y) - 1

    report = inspect(Call(torch.compile(outer, backend="eager"), batch))

    assert report.graphs >= 2
    assert len(report.breaks) == 1
    assert len({graph.compile_id for graph in report.runtime.graphs if graph.calls}) == report.graphs


@pytest.mark.slow
def test_every_shape_of_a_list_is_met_and_unused_variants_do_not_pay(straight):
    report = inspect(
        Inference(torch.compile(straight, backend="eager"), [(n, WIDTH) for n in (4, 5, 6, 7)]), steps=1
    )

    assert report.graphs == 2  # static for 4, then dynamic
    assert len(report.recompiles) == 1
    calls = {graph.compile_id: graph for graph in report.runtime.graphs}
    assert calls["0/1"].calls_per_step in {0.75, 1}
    assert all(graph.pays is False for graph in report.runtime.graphs if not graph.calls)


def test_training_has_its_backward_in_the_graphs_time(straight):
    report = inspect(training(torch.compile(straight, backend="aot_eager")))

    (graph,) = report.runtime.graphs
    assert graph.backward_s is not None
    assert 0 < graph.backward_s < graph.total_s
    assert report.error is not None
    assert report.error.within_tolerance


@pytest.mark.exhaustive
def test_training_of_a_model_compiled_in_place_needs_no_copy(straight):
    straight.compile(backend="aot_eager")
    before = {name: value.clone() for name, value in straight.state_dict().items()}
    report = inspect(training(straight))

    assert report.graphs == 1
    assert report.cost.eager_steady_s is not None
    assert report.error.within_tolerance
    assert all(torch.equal(value, before[name]) for name, value in straight.state_dict().items())


@pytest.mark.exhaustive
def test_autocast_is_compiled_too(straight):
    report = inspect(training(torch.compile(straight, backend="aot_eager"), amp=torch.bfloat16))

    assert report.graphs >= 1
    assert report.error is not None
    assert report.error.tolerance > 1e-2
    assert report.error.within_tolerance


def test_fullgraph_with_a_break_is_a_report_of_a_failure(branching, batch):
    report = inspect(Inference(torch.compile(branching, backend="eager", fullgraph=True), batch))

    assert report.graphs == 0
    assert [compilation.outcome for compilation in report.compilations] == ["failed"]
    assert report.cost.steady_s is None
    assert report.cost.eager_steady_s is not None
    assert report.error is None
    assert any("eagerly it runs" in note and "Data-dependent" in note for note in report.notes)


def test_a_backend_that_raises_is_a_report_of_a_failure_that_says_what(straight, batch):
    def broken(graph, inputs):
        raise ValueError("no lowering for aten.foo")

    report = inspect(Inference(torch.compile(straight, backend=broken), batch))

    assert any("no lowering for aten.foo" in note for note in report.notes)
    assert report.runtime is None
    assert "numerics: the compiled program failed" in report.unavailable


def test_a_program_that_fails_eagerly_too_is_the_users_failure(batch):
    model = torch.compile(nn.Linear(WIDTH + 1, 1), backend="eager")
    with pytest.raises(UserProgramError, match="shapes cannot be multiplied"):
        inspect(Inference(model, batch))


def test_a_failure_of_a_later_compilation_keeps_the_first_call(straight):
    class Failing:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, graph, inputs):
            self.calls += 1
            if self.calls > 1:
                raise ValueError("second graph")
            return graph.forward

    work = Inference(torch.compile(straight, backend=Failing()), [(4, WIDTH), (5, WIDTH)])
    report = inspect(work)

    assert report.cost.first_call_s is not None
    assert report.cost.steady_s is None
    assert any("second graph" in note for note in report.notes)


def test_random_outputs_have_no_error_and_a_reason(batch):
    work = Call(torch.compile(lambda: torch.rand(8), backend="eager"))
    report = inspect(work)

    assert report.error is None
    assert any("random state" in line for line in report.unavailable)


@pytest.mark.slow
def test_calls_that_run_eagerly_in_silence_are_found(batch):
    steps = itertools.count()
    function = torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)

    def step():
        number = next(steps)
        return function(batch, number % 16 + 0.5)

    report = inspect(Call(step), steps=32)

    (silent,) = report.runtime.silent_eager
    assert silent.calls > 0
    assert any("n" in guard for guard in silent.failing)
    assert report.limit_reached


def test_guards_are_timed(broken):
    report, _ = broken
    frames = report.guards.per_compilation
    assert {frame.compile_id for frame in frames} == {"0/0", "1/0"}
    assert all(frame.eval_s is not None and 0 < frame.eval_s < report.cost.first_call_s for frame in frames)
    assert report.guards.eval_s == pytest.approx(sum(frame.eval_s for frame in frames))


@pytest.mark.exhaustive
def test_a_reset_by_the_user_is_counted_and_disturbs_nothing(straight, batch):
    compiled, steps = torch.compile(straight, backend="eager"), itertools.count()

    def step():
        if next(steps) == 2:
            torch._dynamo.reset()
        return compiled(batch)

    report = inspect(Call(step), steps=8)

    assert report.resets == 1
    assert report.graphs == 2
    assert [graph.calls_per_step for graph in report.runtime.graphs if graph.calls] == [1]


@pytest.mark.exhaustive
def test_what_was_compiled_before_is_noted(straight, batch):
    compiled = torch.compile(straight, backend="eager")
    with torch.inference_mode():
        compiled.eval()(batch)
    report = inspect(Inference(compiled, batch))

    assert report.graphs == 0
    assert any("compiled before in this process" in note for note in report.notes)
    assert [graph.calls_per_step for graph in report.runtime.graphs] == [1]


def test_a_profiler_that_runs_already_is_left_alone_and_said(straight, batch):
    with torch.profiler.profile() as profiler:
        report = inspect(Inference(torch.compile(straight, backend="eager"), batch))

    assert report.runtime.graphs == []
    assert report.runtime.verdict is not None
    assert any("another profiler" in line for line in report.unavailable)
    assert profiler.events() is not None


def test_a_fault_in_the_handler_breaks_nothing_and_is_counted(straight, batch, monkeypatch):
    def broken(*_args: Any) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(collector._Handler, "_take", broken)
    report = inspect(Inference(torch.compile(straight, backend="eager"), batch))

    assert report.graphs == 0
    assert report.error.within_tolerance
    assert any("could not be read" in line for line in report.unavailable)


@pytest.mark.slow
def test_a_reader_that_fails_loses_only_its_own_part(branching, batch, monkeypatch):
    from pyrometer.compiler import build

    def broken(_log: Any) -> Any:
        raise KeyError("new in this torch")

    monkeypatch.setattr(build, "read_breaks", broken)
    work = Inference(torch.compile(branching, backend="eager"), batch)
    report = inspect(work, strict=False)

    assert report.breaks == []
    assert report.graphs == 2
    assert any(
        line.startswith("graph breaks:") and "new in this torch" in line for line in report.unavailable
    )
    torch._dynamo.reset()
    with pytest.raises(KeyError):
        inspect(work)


@pytest.mark.parametrize("fails", [False, True])
def test_settings_loggers_stance_and_objects_are_as_before(branching, fails, imported):
    model = torch.compile(branching, backend="eager", fullgraph=fails)
    work = training(model)
    weights = {name: value.clone() for name, value in branching.state_dict().items()}
    model.eval()
    before = states.compiler_state()

    inspect(work, deep=not fails)

    assert states.differences(before) == {}
    assert not branching.training
    assert all(parameter.grad is None for parameter in branching.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in branching.state_dict().items())
    assert not work.parts.optimizer.state


def test_everything_is_restored_when_the_users_program_fails(batch, imported):
    model = torch.compile(nn.Linear(WIDTH + 1, 1), backend="eager")
    before = states.compiler_state()
    with pytest.raises(UserProgramError):
        inspect(Inference(model, batch))

    assert states.differences(before) == {}


def test_the_report_survives_json(broken):
    report, _ = broken

    assert from_json(CompileReport, to_json(report)) == report


def test_a_mode_for_a_model_that_is_compiled_in_place_is_refused(straight, batch):
    straight.compile(backend="eager")
    with pytest.raises(InputError, match="already compiled"):
        inspect(Inference(straight, batch), mode="default")


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"budget_s": -1.0}, {"run_steps": 0}])
def test_numbers_that_are_not_positive_are_refused(straight, batch, wrong):
    with pytest.raises(InputError, match="must be positive"):
        inspect(Inference(straight, batch), **wrong)


def test_progress_is_told(broken):
    _, told = broken

    assert told[0] == "first step"
    assert "steps under the profiler" in told


@pytest.mark.exhaustive
def test_no_module_of_the_compiler_is_imported_by_importing_this():
    import subprocess

    code = (
        "import sys, pyrometer.compiler.inspection.inspect; "
        "sys.exit('torch._dynamo' in sys.modules or 'torch._inductor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_compiler_that_is_switched_off_is_said_to_have_compiled_nothing(straight, batch):
    work = Inference(torch.compile(straight, backend="eager"), batch)
    with torch.compiler.set_stance("force_eager"):
        report = inspect(work)

    assert report.graphs == 0
    assert "nothing was compiled: torch.compile is switched off by the stance force_eager" in report.notes


@pytest.mark.exhaustive
def test_dropout_in_training_has_no_error_and_a_reason():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5), nn.Linear(WIDTH, 1))
    report = inspect(training(torch.compile(model, backend="aot_eager")))

    assert report.error is None
    assert any("random state" in line for line in report.unavailable)


@pytest.mark.exhaustive
def test_a_smaller_last_batch_is_met_and_compiled_before_the_steady_steps(straight):
    batches = [(torch.randn(n, WIDTH), torch.randn(n, 1)) for n in (4, 4, 4, 4, 4, 3)]
    report = inspect(training(torch.compile(straight, backend="eager"), batches), steps=1)

    assert len(report.recompiles) == 1
    assert report.runtime.num_steps % 6 == 0
    assert not any("while steps were timed" in note for note in report.notes)


def test_ctrl_c_in_a_step_keeps_what_was_found_and_leaves_everything_as_it_was(straight, batch, imported):
    compiled, steps = torch.compile(straight, backend="eager"), itertools.count()

    def step():
        if next(steps) == 3:
            raise KeyboardInterrupt
        return compiled(batch)

    before = states.compiler_state()
    report = inspect(Call(step))

    assert report.interrupted
    assert states.differences(before) == {}
    assert sys.getprofile() is None


def test_a_first_step_without_any_work_on_tensors_is_no_error():
    report = inspect(Call(lambda: 3))

    assert report.graphs == 0
    assert report.cost.steady_s is not None


@pytest.mark.slow
def test_the_worst_shape_counts_for_the_numerics(straight):
    def wrong_when_dynamic(graph, inputs):
        dynamic = any(isinstance(each, torch.SymInt) for each in inputs)
        return lambda *given: [output + float(dynamic) for output in graph.forward(*given)]

    work = Inference(torch.compile(straight, backend=wrong_when_dynamic), [(n, WIDTH) for n in (4, 5, 6)])
    report = inspect(work)

    assert not report.error.within_tolerance
    assert report.error.max_abs == pytest.approx(1, abs=1e-3)


def test_a_mode_that_was_asked_for_needs_no_note(straight, batch, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda model, mode: real(model, backend="eager"))
    report = inspect(Inference(straight, batch), mode="default")

    assert report.graphs == 1
    assert not any("as it is written" in note for note in report.notes)


@pytest.mark.exhaustive
def test_a_program_that_gets_faster_is_repaid_and_says_when():
    def many_additions(x):
        for _ in range(300):
            x = x + 1
        return x

    def one_addition(graph, inputs):
        return lambda *given: [next(tensor for tensor in given if isinstance(tensor, torch.Tensor)) + 300]

    class Adding(nn.Module):
        def forward(self, x):
            return many_additions(x)

    work = Inference(torch.compile(Adding(), backend=one_addition), [(4, 4), (5, 4)])
    report = inspect(work, budget_s=1.0, run_steps=10**9)
    short = {graph.compile_id: graph for graph in report.runtime.graphs}

    assert report.error.within_tolerance
    assert report.cost.outcome == "faster"
    assert report.cost.break_even_steps >= 1
    assert short["0/1"].pays is True
    assert short["0/1"].break_even_calls >= 1
    assert any(note.startswith("recompilations took") for note in report.notes)


@pytest.mark.parametrize("wrong", [3, None, nn.Linear(2, 2)])
def test_what_is_no_workload_is_refused_with_what_is_legal(wrong):
    with pytest.raises(InputError, match=r"must be a workload: pm\.Inference\(model, inputs\)"):
        inspect_compile(wrong)


def test_a_module_of_torch_that_is_compiled_in_place_compiles_nothing_and_that_is_said(batch):
    model = nn.Sequential(nn.Linear(WIDTH, 1))
    model.compile(backend="eager")
    report = inspect(Inference(model, batch))

    assert report.graphs == 0
    assert any(
        "Sequential is a module of torch.nn that was compiled in place" in note for note in report.notes
    )


def test_a_step_under_the_profiler_is_as_long_as_the_graphs_in_it_at_least(broken):
    report, _ = broken
    in_graphs_s = sum(graph.total_s for graph in report.runtime.graphs) / report.runtime.num_steps
    assert report.runtime.profiled_step_s > in_graphs_s > 0
