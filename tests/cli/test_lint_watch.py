"""`pyrometer lint --watch` looks again when a file changes, and ends with Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PYROMETER = (
    sys.executable,
    "-c",
    # What is started in the background ignores Ctrl-C, and so do its children.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from pyrometer.cli.main import run; run()",
)
FAULT = """\
import torch

def train(model, loader):
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        print(loss.item())
"""


@pytest.fixture
def watching(tmp_path: Path):
    """The command at work on `a.py`, which has a fault."""
    (tmp_path / "a.py").write_text(FAULT)
    process = subprocess.Popen(
        [*PYROMETER, "lint", "--watch", ".", "--select", "PYR101"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    with process:
        yield process
        process.kill()


def until(process: subprocess.Popen, words: str) -> str:
    """What is printed up to the line with these words."""
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"ended without {words!r}: {said}")


def test_each_change_is_looked_at_until_it_is_interrupted(watching, tmp_path: Path):
    assert "a.py:7:15: PYR101" in until(watching, "watching for changes")
    (tmp_path / "a.py").write_text(FAULT.replace(".item()", ""))
    assert "no findings" in until(watching, "watching for changes")
    (tmp_path / "b.py").write_text(FAULT)
    assert "b.py:7:15: PYR101" in until(watching, "watching for changes")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 130
