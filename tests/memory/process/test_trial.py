"""Two fresh processes, with and without environment variables."""

from __future__ import annotations

import sys

import pytest

from pyrometer.errors import InputError, UserProgramError
from pyrometer.memory.process.trial import ONEDNN_CACHES_OFF, command_with, try_environment

MB = 2**20


def python(text):
    return [sys.executable, "-c", text]


def test_the_peaks_of_both_runs_are_compared():
    grow = python("import os; block = b'x' * (int(os.environ.get('SMALL', '80')) * 2**20)")
    found = try_environment(grow, {"SMALL": "1"})
    assert 70 * MB < found.peak_bytes - found.peak_with_bytes < 90 * MB


def test_a_failing_program_is_named():
    with pytest.raises(UserProgramError, match="ended with 3"):
        try_environment(python("raise SystemExit(3)"))


def test_a_program_that_hangs_is_ended():
    with pytest.raises(UserProgramError, match="took longer than"):
        try_environment(python("import time; time.sleep(600)"), timeout_s=0.5)


def test_what_cannot_be_run_is_refused():
    with pytest.raises(InputError, match="it is empty"):
        try_environment([])
    with pytest.raises(InputError, match="there is no program"):
        try_environment(["/no/such/program"])


def test_the_line_for_a_shell_quotes_what_needs_it():
    assert command_with(["python", "a b.py"], {"X": "1 2"}) == "X='1 2' python 'a b.py'"


VARIABLE_SHAPES = """
import torch
torch.set_num_threads(1)
convolution = torch.nn.Conv2d(16, 32, 3)
with torch.no_grad():
    for number in range(1500):
        convolution(torch.zeros(1, 16, 40 + number % 41, 40 + number % 37))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="oneDNN on x86 and ARM Linux")
def test_growth_by_variable_shapes_ends_without_the_caches_of_onednn():
    found = try_environment(python(VARIABLE_SHAPES), ONEDNN_CACHES_OFF)
    assert found.peak_bytes > found.peak_with_bytes + 30 * MB
