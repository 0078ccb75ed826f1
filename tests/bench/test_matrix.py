"""The matrix: planning, budget, failures and resuming on known cells; and real cells in real processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from pyrometer.bench.matrix import matrix as module
from pyrometer.bench.matrix.axes import parse_axes
from pyrometer.bench.matrix.cell import Cell, settings_label
from pyrometer.bench.matrix.filling import CellRequest, Survey, SurveyRequest, fill_cell, survey
from pyrometer.bench.matrix.matrix import run_matrix
from pyrometer.bench.matrix.state import MatrixState
from pyrometer.errors import InputError, TargetError, UserProgramError
from pyrometer.workload.target import parse_target

TARGETS = """
import torch
from torch import nn
import pyrometer as pm

def net(*layers):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return nn.Sequential(*layers)

def mlp():
    return pm.Inference(net(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)), torch.randn(4, 32), unit="frames")

def overflowing():
    class Overflowing(nn.Module):
        def forward(self, x):
            return (x * 1e6).sum(dim=-1)
    return pm.Inference(Overflowing(), torch.randn(4, 32))

def fragile():
    class Fragile(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
        def forward(self, x):
            if self.weight.dtype == torch.bfloat16:
                raise RuntimeError("no kernel for bfloat16")
            return x * self.weight
    return pm.Inference(Fragile(), torch.randn(4, 4))

def half():
    return pm.Inference(net(nn.Linear(8, 8)).to(torch.bfloat16), torch.randn(4, 8).to(torch.bfloat16))

def compiled():
    return pm.Inference(torch.compile(net(nn.Linear(8, 8))), torch.randn(4, 8))

def training():
    model = net(nn.Linear(8, 1))
    batches = [(torch.randn(4, 8), torch.randn(4, 1))]
    return pm.Training(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1), batches, amp="bfloat16")

def call():
    return pm.Call(lambda: torch.ones(3))

def threaded():
    return mlp().variant(threads=1)

def broken():
    raise RuntimeError("no such split")
"""


@pytest.fixture
def targets(tmp_path):
    (tmp_path / "targets.py").write_text(TARGETS)
    return lambda name: parse_target(f"targets.py:{name}", cwd=tmp_path)


@pytest.fixture
def machine(monkeypatch):
    """Processes that answer at once; `answer(request)` may raise, and time passes as told."""

    class Machine:
        now_s = 100.0
        requests: list[CellRequest] = []
        timeouts: list[float] = []

        def answer(self, request: CellRequest) -> Cell:
            return Cell(
                label=settings_label(request.settings),
                settings=request.settings,
                is_reference=request.is_reference,
            )

        def run_fresh(self, function, request, timeout_s=None):
            if isinstance(request, SurveyRequest):
                return survey(request)
            self.requests.append(request)
            self.timeouts.append(timeout_s)
            return self.answer(request)

    machine = Machine()
    machine.requests, machine.timeouts = [], []
    monkeypatch.setattr(module, "run_fresh", machine.run_fresh)
    monkeypatch.setattr(module.time, "monotonic", lambda: machine.now_s)
    return machine


def test_eager_float32_is_added_once_per_batch_size_where_it_is_missing(machine, targets):
    m = run_matrix(targets("mlp"), parse_axes(["batch=1,8", "mode=default", "dtype=float32,bfloat16"]))
    assert [(cell.label, cell.is_reference) for cell in m.cells] == [
        ("batch 1, float32, eager", True),
        ("batch 1, float32, default", False),
        ("batch 1, bfloat16, default", False),
        ("batch 8, float32, eager", True),
        ("batch 8, float32, default", False),
        ("batch 8, bfloat16, default", False),
    ]


@pytest.mark.parametrize(
    ("target", "axes", "references"),
    [
        ("mlp", "mode=eager,default", [True, False]),
        ("mlp", "dtype=float32,bfloat16", [True, False]),
        ("mlp", "batch=1,2", [True, True]),
        ("mlp", "threads=1,2", [True, False, False]),
        ("mlp", "memory_format=contiguous", [True, False]),
        ("half", "mode=eager,default", [True, False, False]),
        ("half", "dtype=float32,bfloat16", [True, False]),
        ("compiled", "mode=eager,default", [True, False]),
        ("compiled", "dtype=float32", [True, False]),
        ("training", "mode=eager,default", [True, False, False]),
        ("call", "mode=eager,default", [True, False]),
        ("threaded", "threads=1,2", [True, False]),
    ],
)
def test_what_is_eager_float32_depends_on_how_the_workload_is_written(
    machine, targets, target, axes, references
):
    m = run_matrix(targets(target), parse_axes([axes]))
    assert [cell.is_reference for cell in m.cells] == references


@pytest.mark.parametrize(
    ("target", "axes", "refusal"),
    [
        ("training", "batch=1,2", (InputError, "batch_size: not a setting of a Training workload")),
        ("call", "dtype=bfloat16", (InputError, "dtype: not a setting of a Call workload")),
        ("broken", "mode=eager", (UserProgramError, "no such split")),
        ("missing", "mode=eager", (TargetError, "missing")),
    ],
)
def test_what_no_cell_could_do_is_refused_before_the_first(machine, targets, target, axes, refusal):
    error, said = refusal
    with pytest.raises(error, match=said):
        run_matrix(targets(target), parse_axes([axes]))
    assert machine.requests == []


def test_the_reference_of_an_amp_training_is_told_apart_from_its_cells(machine, targets):
    m = run_matrix(targets("training"), parse_axes(["mode=eager", "dtype=float32"]))
    assert [cell.label for cell in m.cells] == ["float32, eager, autocast off", "float32, eager"]


def test_a_cell_that_fails_is_recorded_and_does_not_stop_the_others(machine, targets):
    def answer(request):
        if request.settings["mode"] == "default":
            raise UserProgramError("step 1 raised RuntimeError: no memory")
        return Cell(label="x", settings=request.settings, is_reference=request.is_reference)

    machine.answer = answer
    m = run_matrix(targets("mlp"), parse_axes(["mode=eager,default,max-autotune"]))
    assert [cell.failure for cell in m.cells] == [None, "step 1 raised RuntimeError: no memory", None]
    assert m.num_missing == 0


def test_without_a_budget_every_cell_has_five_seconds_for_each(machine, targets):
    run_matrix(targets("mlp"), parse_axes(["mode=eager,default"]))
    assert [(request.measure_s, request.compare_s) for request in machine.requests] == [(5.0, 5.0)] * 2


def test_a_budget_is_shared_and_never_overrun(machine, targets):
    def answer(request):
        machine.now_s += 8 + request.measure_s + (0 if request.is_reference else request.compare_s)
        return Cell(label="x", settings=request.settings, is_reference=request.is_reference)

    machine.answer = answer
    run_matrix(targets("mlp"), parse_axes(["mode=eager,default", "batch=1,2,4,8"]), budget_s=200)
    assert 180 <= machine.now_s - 100 <= 202
    assert len(machine.requests) == 8
    assert all(timeout_s <= 200 for timeout_s in machine.timeouts)


def test_cells_without_time_left_say_so_and_are_run_by_a_repeated_command(machine, targets, tmp_path):
    def answer(request):
        machine.now_s += 20
        return Cell(label="x", settings=request.settings, is_reference=request.is_reference)

    machine.answer = answer
    axes = parse_axes(["batch=1,2,4,8"])
    first = run_matrix(targets("mlp"), axes, budget_s=45, resume_dir=tmp_path / "state")
    assert first.num_missing > 0
    assert (
        "not run: the budget was spent; repeat the command with a larger --budget" in first.cells[-1].failure
    )
    second = run_matrix(targets("mlp"), axes, budget_s=450, resume_dir=tmp_path / "state")
    assert second.num_missing == 0
    assert second.num_reused == 4 - first.num_missing
    assert list((tmp_path / "state").iterdir()) == []


def test_a_cell_that_the_budget_ended_is_run_again(machine, targets, tmp_path):
    def answer(request):
        machine.now_s += 60
        raise UserProgramError("a fresh process took longer than 50 s and was ended")

    machine.answer = answer
    m = run_matrix(targets("mlp"), parse_axes(["mode=eager"]), budget_s=50, resume_dir=tmp_path)
    assert m.num_missing == 1
    assert "while it ran" in m.cells[0].failure


def test_ctrl_c_keeps_the_cells_that_ended(machine, targets, tmp_path):
    def answer(request):
        if request.settings["batch_size"] == 4:
            raise KeyboardInterrupt
        return Cell(label="x", settings=request.settings, is_reference=request.is_reference)

    machine.answer = answer
    m = run_matrix(targets("mlp"), parse_axes(["batch=1,2,4,8"]), resume_dir=tmp_path)
    assert m.interrupted
    assert m.num_missing == 2
    assert "not run: interrupted" in m.cells[2].failure
    del machine.answer
    assert run_matrix(targets("mlp"), parse_axes(["batch=1,2,4,8"]), resume_dir=tmp_path).num_reused == 2


def test_progress_names_the_cells(machine, targets):
    told = []
    run_matrix(targets("mlp"), parse_axes(["mode=eager,default"]), progress=lambda *what: told.append(what))
    assert told == [
        (0.0, "looking at the workload"),
        (0.0, "cell 1 of 2: eager"),
        (0.5, "cell 2 of 2: default"),
    ]


@pytest.mark.parametrize("budget_s", [0, -5])
def test_a_budget_must_be_positive(targets, budget_s):
    with pytest.raises(InputError, match="budget: got"):
        run_matrix(targets("mlp"), parse_axes(["mode=eager"]), budget_s=budget_s)


def finished(settings) -> Cell:
    return Cell(label=settings_label(settings), settings=settings)


def test_state_is_found_by_target_content_and_machine(targets, tmp_path):
    target = targets("mlp")
    state = MatrixState(tmp_path, target, "machine A")
    state.save(finished({"batch_size": 1}))
    assert MatrixState(tmp_path, target, "machine A").load({"batch_size": 1}) is not None
    assert state.load({"batch_size": 2}) is None
    assert MatrixState(tmp_path, target, "machine B").load({"batch_size": 1}) is None
    assert MatrixState(tmp_path, targets("half"), "machine A").load({"batch_size": 1}) is None
    Path(target.place).write_text(TARGETS + "# changed")
    assert MatrixState(tmp_path, target, "machine A").load({"batch_size": 1}) is None


def test_a_torn_file_counts_as_no_cell(targets, tmp_path):
    state = MatrixState(tmp_path, targets("mlp"), "machine")
    state.save(finished({"batch_size": 1}))
    (file,) = state.folder.iterdir()
    file.write_bytes(file.read_bytes()[:20])
    assert state.load({"batch_size": 1}) is None


def test_a_folder_that_cannot_be_written_is_one_line(targets, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot keep finished cells there") as caught:
        MatrixState(tmp_path / "file", targets("mlp"), "machine")
    assert "\n" not in str(caught.value)


def test_the_survey_says_what_the_workload_is(targets):
    seen = survey(SurveyRequest(spec=targets("mlp").spec, cells=[{"mode": "eager"}]))
    assert seen == Survey(
        name="Sequential", unit="frames", is_reference=[True], reference={"dtype": "float32", "mode": "eager"}
    )


@pytest.fixture
def filled(targets, monkeypatch):
    """Fill a cell in this very process."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "kept by the fixture")
    if "torch._dynamo.utils" in sys.modules:  # what a process of its own would not have compiled
        sys.modules["torch._dynamo.utils"].counters.clear()

    def fill(name, settings, *, is_reference=False):
        request = CellRequest(
            spec=targets(name).spec,
            settings=settings,
            is_reference=is_reference,
            measure_s=0.1,
            compare_s=0.1,
        )
        return fill_cell(request)

    return fill


def test_a_cell_has_measurement_error_and_verdict(filled):
    cell = filled("mlp", {"batch_size": 8, "dtype": "bfloat16"})
    assert cell.label == "batch 8, bfloat16"
    assert cell.measurement.config == cell.label
    assert cell.measurement.units_per_step == 8
    assert 0 < len(cell.measurement.samples_s) <= 200
    assert cell.error.within_tolerance
    assert 1e-5 < cell.error.max_rel < 3e-2
    assert cell.verdict.outcome in {"faster", "slower", "same", "undecided"}
    assert cell.held_bytes == (32 * 64 + 64 + 64 * 8 + 8) * 4
    assert (cell.graphs.num_graphs, cell.failure) == (0, None)


def test_the_reference_has_no_verdict_and_costs_no_copy(filled):
    cell = filled("mlp", {"batch_size": 8, "dtype": "float32", "mode": "eager"}, is_reference=True)
    assert cell.is_reference
    assert (cell.verdict, cell.error, cell.held_bytes) == (None, None, 0)


def test_another_result_is_an_error_above_tolerance(filled):
    cell = filled("overflowing", {"dtype": "float16"})
    assert not cell.error.within_tolerance
    assert "NaN or infinity" in cell.error.mismatch


def test_a_dtype_without_kernels_is_the_programs_failure(filled):
    with pytest.raises(UserProgramError, match="no kernel for bfloat16"):
        filled("fragile", {"dtype": "bfloat16"})


def test_training_with_amp_is_compared_with_float32(filled):
    cell = filled("training", {"mode": "eager"})
    assert not cell.is_reference
    assert 0 < cell.error.max_rel < 3e-2
    assert cell.error.tolerance == 3e-2


@pytest.mark.slow
def test_a_compiled_cell_tells_compiling_from_its_steps(filled, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    cell = filled("mlp", {"batch_size": 4, "mode": "default"})
    torch.compiler.reset()
    assert cell.measurement.compile_s > cell.measurement.median_s
    assert cell.measurement.first_call_s > 10 * cell.measurement.median_s
    assert (cell.graphs.num_graphs, cell.graphs.num_breaks) == (1, 0)
    assert cell.error.within_tolerance
    assert cell.error.max_rel < 1e-5
    assert cell.verdict.ratio > 0


@pytest.mark.slow
@pytest.mark.exhaustive  # processes of its own run cells of `pyrometer bench --matrix`, too
def test_a_real_matrix(targets, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CELL_S", 0.5)  # of steps that take microseconds
    axes = parse_axes(["mode=eager,default", "batch=4"])
    m = run_matrix(targets("mlp"), axes, resume_dir=tmp_path / "state")
    assert [cell.failure for cell in m.cells] == [None] * 2
    eager, default = m.cells
    assert (eager.is_reference, eager.measurement.compile_s) == (True, None)
    assert default.measurement.compile_s > 0.5
    assert default.measurement.first_call_s > 10 * default.measurement.median_s
    assert (default.graphs.num_graphs, default.graphs.num_breaks) == (1, 0)
    assert default.error.within_tolerance
    assert default.error.max_rel < 1e-5
    assert default.verdict.ci_low <= default.verdict.ratio <= default.verdict.ci_high
    assert m.recommendation is not None
    assert len(m.rejected) <= 2
    assert not list((tmp_path / "state").iterdir())
