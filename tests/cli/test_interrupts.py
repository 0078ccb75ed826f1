"""Ctrl-C after the measurement: what was measured is kept, stored and shown."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import torch

from pyrometer.cli.interrupts import finishing
from pyrometer.cli.main import main

MODEL = """
import torch
import pyrometer as pm

def work():
    return pm.Inference(torch.nn.Linear(8, 8), torch.randn(4, 8))
"""


def press() -> None:
    """Ctrl-C, as the terminal sends it."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def pressing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()  # what another test compiled is not compiled again
    return monkeypatch


@pytest.mark.parametrize("verb", ["check", "audit"])
def test_what_was_measured_before_is_kept(verb: str, pressing: pytest.MonkeyPatch, capsys) -> None:
    pressing.setattr(
        "pyrometer.cli.progress._announce", lambda _share, what: press() if "tracing" in what else None
    )
    assert main([verb, "model.py:work", "--budget", "0.2s", "--json"]) == 130
    document = json.loads(capsys.readouterr().out)
    assert document["run_id"]
    assert document["evidence"]["measurement"]["num_samples"]
    assert not document["evidence"].get("trace")
    assert [note for note in document["evidence"]["notes"] if "Ctrl-C" in note]


@pytest.mark.parametrize("stage", ["predicting", "watching"])
def test_what_was_recorded_of_memory_is_kept(stage: str, pressing: pytest.MonkeyPatch, capsys) -> None:
    pressing.setattr(
        "pyrometer.cli.progress._announce", lambda _share, what: press() if what.startswith(stage) else None
    )
    assert main(["memory", "model.py:work", "--json"]) == 130
    document = json.loads(capsys.readouterr().out)
    memory = document["evidence"]["memory"]
    assert document["run_id"]
    assert memory["peak_bytes"]
    assert memory["interrupted"]
    assert not memory.get("leak")
    assert [note for note in memory["notes"] if "Ctrl-C" in note]


@pytest.mark.slow
def test_what_was_compiled_is_kept(pressing: pytest.MonkeyPatch, capsys) -> None:
    pressing.setattr(
        "pyrometer.cli.progress._announce", lambda _share, what: press() if "profiler" in what else None
    )
    assert main(["compile", "model.py:work", "--json"]) == 130
    document = json.loads(capsys.readouterr().out)
    assert document["run_id"]
    assert document["evidence"]["compiled"]["graphs"] == 1
    assert document["evidence"]["compiled"]["interrupted"]


@pytest.mark.exhaustive
def test_modes_that_were_done_are_kept(pressing: pytest.MonkeyPatch, capsys) -> None:
    pressing.setattr(
        "pyrometer.cli.progress._announce",
        lambda _share, what: press() if what.startswith("mode ") and ", 2 of" in what else None,
    )
    assert main(["compile", "model.py:work", "--with", "modes", "--budget", "1s", "--json"]) == 130
    evaluation = json.loads(capsys.readouterr().out)["evidence"]["compiled"]["evaluation"]
    assert evaluation["interrupted"]
    assert [mode["mode"] for mode in evaluation["modes"]] == ["eager"]


def test_a_captured_trace_is_analysed_and_kept_although_ctrl_c_is_pressed(
    pressing: pytest.MonkeyPatch, capsys
) -> None:
    from pyrometer.trace.reporting import job_report

    real = job_report.report_trace

    def pressed(*arguments, **more):
        press()
        return real(*arguments, **more)

    pressing.setattr(job_report, "report_trace", pressed)
    assert main(["trace", "model.py:work", "--steps", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["run_id"]
    assert document["evidence"]["trace"]


def test_before_the_measurement_there_is_nothing_to_keep(pressing: pytest.MonkeyPatch, capsys) -> None:
    pressing.setattr(
        "pyrometer.cli.progress._announce", lambda _share, what: press() if what == "first call" else None
    )
    assert main(["check", "model.py:work", "--budget", "0.2s", "--json"]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err.splitlines()[-1]) == ("", "interrupted")


def test_while_it_is_kept_only_a_second_press_ends_it(capsys) -> None:
    before = signal.getsignal(signal.SIGINT)
    with finishing():
        press()
    assert "Ctrl-C again" in capsys.readouterr().err
    with finishing():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before
