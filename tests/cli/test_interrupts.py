"""Ctrl-C after the measurement: what was measured is kept, stored and shown."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

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
