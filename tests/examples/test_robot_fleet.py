"""The fleet under watch: each fault is alarmed, explained and answered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLEET = Path(__file__).parents[2] / "examples" / "robot_fleet.py"


@pytest.mark.slow
def test_faults_are_seen_explained_and_answered(tmp_path):
    ended = subprocess.run(
        [sys.executable, str(FLEET)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=400
    )
    assert not ended.stderr
    # How long frames take is up to what else runs here, so that only numbers and errors are certain.
    for alarm in ("infer.numerics", "infer.errors"):
        assert f"alarm {alarm}" in ended.stdout
    assert "degraded" in ended.stdout
    assert ended.stdout.count("pyrometer show") >= 3
