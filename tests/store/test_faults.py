"""What is promised of stored results when processes are killed and disks fail, by the script that tries it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
def test_no_fault_loses_or_halves_a_result():
    done = subprocess.run(
        [sys.executable, SCRIPT], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
