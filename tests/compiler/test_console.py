"""While a report tells of breaks, torch does not print them as well."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging
import torch
from pyrometer.compiler.private.console import without_break_warnings

def item(x):
    return x * x.sum().item()

with without_break_warnings():
    torch.compile(item, backend="eager")(torch.ones(2))
    logging.getLogger("torch._dynamo").warning("something else")
for name in ("torch", "torch._dynamo"):
    assert not any(handler.filters for handler in logging.getLogger(name).handlers)
"""


@pytest.mark.exhaustive
def test_breaks_are_kept_from_the_console_and_other_warnings_are_not():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "Graph break" not in done.stderr
    assert "something else" in done.stderr
