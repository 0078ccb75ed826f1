"""A script in which there is nothing to judge; and that what its command line must not tell is told nowhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from telling import everything_told

from pyrometer.cli.main import main

IDLE = "print('nothing to do')"
ARGUMENTS = (
    "--password", "canary-1", "--hf-token=canary-2", "db.secret=canary-3", "--data", "s3://me:canary-4@host/x?sig=canary-5",
    "--note", "canary-environment",
)  # fmt: skip


@pytest.mark.parametrize("verb", ["check", "audit", "trace", "memory", "compile"])
def test_a_script_without_steps_says_what_to_do_and_tells_no_secret(tmp_path: Path, monkeypatch, capfd, verb):
    (tmp_path / "idle.py").write_text(IDLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", "canary-environment")
    words = [verb, "idle.py", "--json", "-o", "page.html", "--", *ARGUMENTS]
    monkeypatch.setattr("sys.argv", ["pyrometer", *words])
    assert main(words) == 3
    captured = capfd.readouterr()
    assert "idle.py: no step was seen, so that nothing could be judged; name the script" in captured.err
    assert "pm.Inference(model, inputs)" in captured.err
    assert "canary" not in everything_told(captured.out, captured.err, tmp_path)
    if verb != "trace":  # which has nothing to store
        assert json.loads(captured.out)["run_id"] is not None
        assert "REDACTED" in (tmp_path / "page.html").read_text()


def test_a_failure_tells_no_secret(tmp_path: Path, monkeypatch, capfd):
    (tmp_path / "model.py").write_text(
        "def work():\n    raise OSError('no host at postgres://me:canary@db:5432/x')"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "model.py:work"]) == 4
    captured = capfd.readouterr()
    assert "no host at postgres://REDACTED@db:5432/x" in captured.err
    assert "canary" not in everything_told(captured.out, captured.err, tmp_path)
