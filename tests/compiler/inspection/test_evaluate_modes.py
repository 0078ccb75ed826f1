from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from pyrometer.bench.quality import CaveatCode, caveat
from pyrometer.compiler.build import build_report
from pyrometer.compiler.inspection import evaluation as evaluation_module
from pyrometer.compiler.inspection.evaluation import EvaluatedMode, conclude_modes, evaluate_modes
from pyrometer.compiler.inspection.record import Evaluation, ModeResult
from pyrometer.compiler.log import CompileLog
from pyrometer.errors import InputError, UserProgramError
from pyrometer.record import from_json, to_json
from pyrometer.report.facts.compile import sections
from pyrometer.workload.inference import Inference
from pyrometer.workload.target import parse_target

REAL = torch.compile


@pytest.fixture
def quick(monkeypatch):
    """Modes that compile without Inductor; `max-autotune` fails, and `reduce-overhead` computes something else."""

    def compile_quickly(model: Any, mode: str) -> Any:
        def backend(graph, inputs):
            if mode == "max-autotune":
                raise ValueError("no such kernel")
            if mode == "reduce-overhead":
                return lambda *inputs: [output + 1 for output in graph.forward(*inputs)]
            return graph.forward

        return REAL(model, backend=backend)

    monkeypatch.setattr(torch, "compile", compile_quickly)


def row(mode: str, outcome: str, ratio: float | None = None, **fields: Any) -> EvaluatedMode:
    words = fields.pop("words", f"{outcome} words")
    return EvaluatedMode(result=ModeResult(mode=mode, outcome=outcome, ratio=ratio, **fields), words=words)


EAGER = row("eager", "reference", 1.0)


def test_the_fastest_mode_that_is_right_is_the_best():
    rows = [
        EAGER,
        row("default", "faster", 0.8),
        row("reduce-overhead", "faster", 0.5, failure="outputs differ"),
        row("max-autotune", "faster", 0.7, break_even_steps=120, words="1.43× faster (1.4–1.5)"),
    ]
    evaluation = conclude_modes(rows)

    assert evaluation.best == "max-autotune"
    assert evaluation.sentence == "max-autotune: 1.43× faster (1.4–1.5), repaid after 120 steps"


def test_eager_is_best_when_nothing_was_shown_to_be_faster():
    evaluation = conclude_modes([EAGER, row("default", "same", 0.97, words="no change (within ±5 %)")])

    assert evaluation.best == "eager"
    assert evaluation.sentence == "eager: no mode was shown to be faster; default no change (within ±5 %)"


def test_what_else_the_machine_did_is_told_once_for_the_whole_table():
    load = caveat(CaveatCode.COMPETING_LOAD, "other processes kept 1.5 of 2 CPUs busy", "stop them")
    rows = [
        msgspec.structs.replace(EAGER, caveats=[load]),
        msgspec.structs.replace(row("default", "same", 1.0), caveats=[load]),
    ]
    evaluation = conclude_modes(rows)

    assert evaluation.caveats == [load]
    (chapter,) = [
        section
        for section in sections(msgspec.structs.replace(build_report(CompileLog(())), evaluation=evaluation))
        if section.slug == "evaluation"
    ]
    assert any(fact.value == load.message for fact in chapter.facts)


def test_a_busy_machine_is_a_caveat_of_each_mode(straight, batch, monkeypatch):
    load = caveat(CaveatCode.COMPETING_LOAD, "other processes kept 1.5 of 2 CPUs busy", "stop them")
    few = caveat(CaveatCode.FEW_SAMPLES, "3 samples", "measure longer")
    real = evaluation_module.measure

    def crowded(*arguments, **options):
        return msgspec.structs.replace(real(*arguments, **options), warnings=[load, few])

    monkeypatch.setattr(evaluation_module, "measure", crowded)
    evaluation = evaluate_modes(Inference(straight, batch), (), mode_s=0.1)
    assert [caveat.code for caveat in evaluation.caveats] == ["competing_load"]
    assert evaluation.elapsed_s > 0


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_every_mode_is_a_row_and_one_that_fails_or_computes_something_else_says_why(straight, batch):
    evaluation = evaluate_modes(
        Inference(straight, batch), ("default", "max-autotune", "reduce-overhead"), mode_s=0.2
    )
    eager, default, failed, wrong = evaluation.modes

    assert (eager.mode, eager.outcome) == ("eager", "reference")
    assert eager.latency_s > 0
    assert eager.throughput_per_s > 0
    assert eager.compile_s is None
    assert default.outcome in {"faster", "slower", "same", "undecided"}
    assert default.compile_s > 0
    assert default.max_rel == 0
    assert default.cosine == 1
    assert default.device_utilization is None
    assert default.peak_bytes > 0
    assert failed.outcome == "failed"
    assert "no such kernel" in failed.failure or "BackendCompilerFailed" in failed.failure
    assert evaluation.best in {"eager", "default"}, "what computes something else is not recommended"
    assert "outputs differ" in wrong.failure
    assert wrong.max_abs == pytest.approx(1, abs=1e-3)
    assert from_json(Evaluation, to_json(evaluation)) == evaluation


def test_unknown_modes_are_refused_with_the_legal_ones(straight, batch):
    with pytest.raises(InputError, match="legal are eager, default"):
        evaluate_modes(Inference(straight, batch), ("fastest",))


def test_a_model_that_is_compiled_in_place_is_refused(straight, batch):
    straight.compile(backend="eager")
    with pytest.raises(InputError, match="already compiled"):
        evaluate_modes(Inference(straight, batch), ("default",), mode_s=0.1)


def test_a_program_that_fails_eagerly_is_the_users_failure(batch):
    with pytest.raises(UserProgramError):
        evaluate_modes(Inference(nn.Linear(3, 3), batch), ("default",), mode_s=0.1)


@pytest.mark.slow
def test_a_target_runs_each_mode_in_a_process_of_its_own(tmp_path):
    (tmp_path / "model.py").write_text(
        "import torch\n"
        "def work():\n"
        "    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))\n"
        "    return model, torch.randn(32, 64)\n"
    )
    told: list[str] = []
    evaluation = evaluate_modes(
        parse_target("model.py:work", cwd=tmp_path),
        ("default",),
        mode_s=0.3,
        progress=lambda _share, what: told.append(what),
    )

    assert told == ["mode eager, 1 of 2", "mode default, 2 of 2"]
    default = evaluation.modes[1]
    assert default.artifact_bytes > 0
    assert default.compile_s > 0
    assert default.max_rel < 1e-4
