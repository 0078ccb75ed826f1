"""A worker that crashes costs one test, and the run comes to an end."""

from __future__ import annotations

import sys
from pathlib import Path

import file_scheduling

PASSES = "def test_{}(): pass\n"
CRASHES = "import os, signal\ndef test_crash(): os.kill(os.getpid(), signal.SIGKILL)\n"


def test_a_crashed_worker_is_replaced_and_ends(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(file_scheduling.__file__).parent))
    first, last = PASSES.format("first"), PASSES.format("last")
    pytester.makepyfile(
        test_whole=first + last,
        test_middle=first + CRASHES + last,
        test_end=first + CRASHES,
        test_alone=CRASHES,
    )
    options = ("-p", "xdist", "-p", "file_scheduling", "-n", "2", "--dist", "loadfile")
    run = pytester.run(
        sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-q", *options, timeout=120
    )
    run.assert_outcomes(passed=5, failed=3)
