"""Rewrites of findings, tried on a target: measured beside predicted, no file touched, and what is wrong or slower not advised."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pyrometer.advice import Advice, Gain
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.place import Place
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import Finding
from pyrometer.tuning import trying
from pyrometer.tuning.trying import NOTHING, try_rewrites
from pyrometer.workload.changes.edited import load_edited
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, parse_target

PARTS = "import torch\n\n\ndef score(x):\n    return torch.sort(x, dim=1, descending=True).values[:, :3]\n"
TARGET = """\
import torch
from torch import nn

import pyrometer as pm
from parts import score

SCALE = 2.0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 32)

    def forward(self, x):
        return score(self.layer(x)) * SCALE


def workload():
    return pm.Inference(Net(), torch.randn(4, 16))


def training():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return pm.Training(model, nn.functional.mse_loss, optimizer, [(torch.randn(3, 4), torch.randn(3, 2))] * 4)
"""
SORTED = "return torch.sort(x, dim=1, descending=True).values[:, :3]"
BEST = "return torch.topk(x, 3, dim=1).values"
MADE = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)"
FUSED = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    (tmp_path / "program.py").write_text(TARGET)
    (tmp_path / "parts.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    return parse_target("program.py:workload")


def diagnosis(*rewrites: tuple[str, str], file: str = "parts.py", line: int = 5, **more: Any) -> Diagnosis:
    predicted = Gain(ratio_low=0.4, ratio_high=0.7, method="bound")
    findings = [
        Finding(
            code="PYR515", name="inefficient-op", severity="warning", message="sorts all", where=Place(file=file, line=line), confidence="high",
            advice=Advice(slug="inefficient-op", title="Do less.", replaces=before, rewrite=after, gain=predicted, **{"fix_class": "tolerance", **more}),
        )
        for before, after in rewrites
    ]  # fmt: skip
    return Diagnosis(target="program.py:workload", findings=findings, reading=[])


@pytest.fixture
def verdict(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`verdict("faster", 0.5)`: what the comparison of times is to say."""

    def say(outcome: Any, ratio: float) -> None:
        found = Verdict(
            outcome=outcome, ratio=ratio, ci_low=ratio * 0.9, ci_high=ratio * 1.1, confidence=0.99, margin=0.05, smallest_effect=0.02,
            num_blocks=40, elapsed_s=1.0,
        )  # fmt: skip
        monkeypatch.setattr(trying, "compared", lambda *_, **__: found)

    return say


def test_what_was_measured_stands_beside_what_was_predicted(target: Target, verdict: Any) -> None:
    verdict("faster", 0.5)
    (finding,) = try_rewrites(target, diagnosis((SORTED, BEST))).findings
    assert finding.trial.outcome == "faster"
    assert finding.trial.max_rel == 0
    assert (finding.trial.predicted.ratio_low, finding.trial.predicted.measured) == (0.4, False)
    assert finding.advice.gain.measured
    assert (finding.advice.gain.ratio_low, finding.advice.gain.ratio_high) == (0.45, 0.55)
    assert finding.advice.rewrite == BEST


def test_a_rewrite_with_other_results_is_said_to_and_no_longer_advised(target: Target) -> None:
    other = "return torch.topk(x, 3, dim=1, largest=False).values"
    first, last = try_rewrites(
        target, diagnosis((SORTED, other), ("nothing", "else"), fix_class="exact")
    ).findings
    assert {first.trial.outcome, last.trial.outcome} == {"differs", "failed"}
    for finding in (first, last):
        assert (finding.advice.rewrite, finding.advice.gain, finding.severity) == (None, None, "info")
        assert finding.advice.title == "Do less."


def test_one_that_is_slower_goes_behind_one_that_is_faster(
    target: Target, monkeypatch: pytest.MonkeyPatch, verdict: Any
) -> None:
    verdict("slower", 1.5)
    slower = trying.compared(None, None, 1.0)
    verdict("faster", 0.5)
    answers = iter([slower, trying.compared(None, None, 1.0)])

    def compared(*_: Any, **__: Any) -> Verdict:
        return next(answers)

    monkeypatch.setattr(trying, "compared", compared)
    other = "return torch.topk(x, 3, 1).values"
    first, second = try_rewrites(target, diagnosis((SORTED, other), (SORTED, BEST))).findings
    assert (first.trial.outcome, second.trial.outcome) == ("faster", "slower")
    assert first.advice.rewrite == BEST
    assert second.advice.rewrite is None


def test_a_rewrite_of_the_factory_is_tried_too(target: Target, verdict: Any) -> None:
    verdict("faster", 0.9)
    line = TARGET.splitlines().index(f"    {MADE}") + 1
    work = parse_target("program.py:training")
    (finding,) = try_rewrites(work, diagnosis((MADE, FUSED), file="program.py", line=line)).findings
    assert finding.trial.outcome == "faster"
    assert finding.trial.max_rel < 1e-4


def test_without_a_rewrite_that_keeps_results_there_is_nothing_to_try(target: Target) -> None:
    semantic = diagnosis((SORTED, BEST), fix_class="semantic")
    tried = try_rewrites(target, semantic)
    assert tried.findings == semantic.findings
    assert tried.notes == [NOTHING]


def test_after_the_budget_no_other_rewrite_is_begun(target: Target, verdict: Any) -> None:
    verdict("faster", 0.5)
    clock = iter([0.0, 100.0])
    other = "return torch.topk(x, 3, 1).values"
    tried = try_rewrites(
        target, diagnosis((SORTED, BEST), (SORTED, other)), budget_s=10, now=lambda: next(clock)
    )
    assert [finding.trial is not None for finding in tried.findings] == [True, False]
    assert tried.notes == ["1 more rewrite could be tried: the budget of 10 s was spent"]


def test_a_script_is_not_tried(tmp_path: Path, capfd: Any) -> None:
    from pyrometer.cli.main import main

    (tmp_path / "script.py").write_text("print(1)\n")
    assert main(["check", str(tmp_path / "script.py"), "--try"]) == 2
    assert "--try" in capfd.readouterr().err


def test_an_edited_target_leaves_the_first_one_and_all_files_as_they_are(
    target: Target, tmp_path: Path
) -> None:
    work = load_workload(target)
    before = set(sys.modules), list(sys.path), list(sys.meta_path)
    text = TARGET.replace("SCALE = 2.0", "SCALE = 6.0")
    other = load_edited(target, {tmp_path / "program.py": text})
    assert (set(sys.modules), list(sys.path), list(sys.meta_path)) == before
    assert (tmp_path / "program.py").read_text() == TARGET

    def output(one: Any) -> torch.Tensor:
        with one.open() as session:
            session.activate()
            result: torch.Tensor = session.step(session.prepare())
            return result

    torch.testing.assert_close(output(other), 3 * output(work))
    torch.testing.assert_close(output(load_workload(target)), output(work))


def test_an_edit_that_cannot_be_imported_is_told_and_leaves_nothing(target: Target, tmp_path: Path) -> None:
    before = list(sys.meta_path)
    (finding,) = try_rewrites(target, diagnosis((SORTED, "return undefined_name(x)"))).findings
    assert finding.trial.outcome == "failed"
    assert "undefined_name" in finding.trial.said
    assert list(sys.meta_path) == before


@pytest.mark.measuring
def test_a_real_check_measures_what_it_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    import json

    from pyrometer.cli.main import main

    large = TARGET.replace("nn.Linear(16, 32)", "nn.Linear(16, 20_000)").replace(
        "torch.randn(4, 16)", "torch.randn(16, 16)"
    )
    (tmp_path / "program.py").write_text(large)
    (tmp_path / "parts.py").write_text(PARTS.replace("(x)", "(x: torch.Tensor)"))
    monkeypatch.chdir(tmp_path)
    assert main(["check", "program.py:workload", "--try", "--budget", "4s", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)["diagnosis"]["findings"]
    (finding,) = [one for one in found if one["code"] == "PYR515"]
    assert finding["trial"]["outcome"] in {"faster", "undecided"}
    assert finding["trial"]["ratio"] < 0.8
    assert finding["trial"]["max_rel"] == 0
    assert (tmp_path / "parts.py").read_text() == PARTS.replace("(x)", "(x: torch.Tensor)")
