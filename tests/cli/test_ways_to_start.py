"""However the command is started, what started it is no line of the user's program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from representative import standing_for_all

import pyrometer

PACKAGE = Path(pyrometer.__file__).parent
MODEL = """
import torch
import pyrometer as pm

def workload():
    return pm.Inference(torch.nn.Linear(64, 64), (torch.randn(8, 64),))
"""
LAUNCHER = """
from pyrometer.cli.main import run

def go():
    run()

go()
"""
WAYS = {way: way for way in ("module", "text", "script", "elsewhere")}


def command(way: str, folder: Path) -> list[str]:
    """The command line up to its arguments."""
    if way == "text":
        return [sys.executable, "-c", "from pyrometer.cli.main import run; run()"]
    if way == "script":
        (folder / "launcher.py").write_text(LAUNCHER)
        return [sys.executable, "launcher.py"]
    if way == "elsewhere":
        (folder / "tools").mkdir()
        (folder / "tools" / "pyrometer").symlink_to(PACKAGE)
    return [sys.executable, "-m", "pyrometer"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", standing_for_all(WAYS, "elsewhere"))
def test_what_started_it_is_no_line_of_the_program(way: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    start = command(way, tmp_path)
    home = tmp_path / "tools" if way == "elsewhere" else PACKAGE.parent
    done = subprocess.run(
        [*start, "check", "model.py:workload", "--budget", "200ms", "--no-store", "--json"],
        env={**os.environ, "PYTHONPATH": str(home)},
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["evidence"]["trace"]["top_lines"] == []
    host = document["evidence"].get("host") or {}
    lines = [*host.get("lines", []), *[each["where"] for each in document["diagnosis"]["findings"]]]
    assert not [line for line in lines if Path(line["file"] or "model.py").name != "model.py"]
