"""What `make guard` watches of Pyrometer itself: importing, reading traces, linting, explaining."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[1]
_SCRATCH = tempfile.TemporaryDirectory(prefix="pyrometer-perf-")
_FOLDER = Path(_SCRATCH.name)

_PROGRAM = """
import torch

def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def perf_import() -> Callable[[], Any]:
    """`import pyrometer` in a fresh interpreter, which imports no torch."""
    return lambda: subprocess.run([sys.executable, "-c", "import pyrometer"], check=True)


def perf_help() -> Callable[[], Any]:
    """`pyrometer --help`."""
    command = [sys.executable, "-m", "pyrometer", "--help"]
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def perf_read_trace() -> Callable[[], Any]:
    """Reading a trace of 20,000 events."""
    from pyrometer.trace.reading.read import read_trace

    path = _FOLDER / "trace.json"
    path.write_text(json.dumps({"traceEvents": list(_events(20_000)), "schemaVersion": 1}))
    return lambda: read_trace(path)


def _events(number: int) -> list[dict[str, Any]]:
    return [
        {
            "ph": "X", "cat": "cpu_op", "name": f"aten::op{index % 50}", "pid": 1, "tid": 1 + index % 3,
            "ts": 10.0 * index, "dur": 8.0, "args": {"External id": index},
        }
        for index in range(number)
    ]  # fmt: skip


def perf_lint() -> Callable[[], Any]:
    """Linting a file of some hundred lines."""
    from pyrometer.verbs.lint import lint

    path = _FOLDER / "program.py"
    path.write_text("".join(_PROGRAM.replace("train", f"train{index}") for index in range(20)))
    return lambda: lint(path)


def perf_explain() -> Callable[[], Any]:
    """From the evidence of a program to its findings, which ends every check."""
    from pyrometer.evidence.evidence import Evidence
    from pyrometer.record import from_json
    from pyrometer.rules.explain import explain

    recorded = _ROOT / "tests" / "recorded" / "tiny_ops-workload.json.gz"
    evidence = from_json(Evidence, json.dumps(json.loads(gzip.decompress(recorded.read_bytes()))["evidence"]))
    return lambda: explain(evidence)
