"""`bench` with `--matrix`, `--cold`, `--soak` and `--processes`, through the real command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from pyrometer.report.schema import schema_of

# A shell that starts the tests in the background has them ignore SIGINT, and children inherit that.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from pyrometer.bench.matrix import matrix; matrix.CELL_S = 0.2; "
    "from pyrometer.cli.main import run; run()"
)
MODEL = """
import torch
from torch import nn
import pyrometer as pm

def work():
    print("a factory that prints")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return pm.Inference(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)), torch.randn(4, 32), unit="frames")
"""


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@pytest.fixture
def bench(project, call, monkeypatch):
    """Runs the verb in this process; what it measures has processes of its own."""
    monkeypatch.setattr("pyrometer.bench.matrix.matrix.CELL_S", 0.2)
    return lambda *arguments: call(project, "bench", "model.py:work", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["batch=1,2"], "batch=1,2: axes go with --matrix, as in --matrix batch=1,2"),
        (["--matrix", "size=3"], "size=3: 'size' is not an axis; legal are batch, dtype"),
        (["--matrix", "mode=fast"], "mode=fast: legal are eager, default"),
        (["--matrix", "batch=1", "--cold", "2"], "--matrix and --cold exclude each other"),
        (["--processes", "5"], "--processes goes with --vs TARGET"),
    ],
)
def test_wrong_use_is_one_line(project, call, arguments, said):
    done = call(project, "bench", "model.py:work", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_interrupted_matrix_prints_what_it_has_goes_on_later_and_can_be_shown_again(project, bench, call):
    asked = ("--matrix", "batch=2", "dtype=float32,bfloat16", "--json")
    command = [sys.executable, "-c", ENTRY, "bench", "model.py:work", *asked]
    first = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=project
    )
    while not list(project.glob(".pyrometer/unfinished/*/*.json")):
        assert first.poll() is None
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate()
    assert first.returncode == 130
    matrix = json.loads(out)["matrix"]
    assert matrix["interrupted"]
    assert matrix["num_missing"] in {1, 2}  # the file of a cell is there just before its figures are in hand
    second = bench(*asked)
    assert second.returncode == 0, second.stderr
    document = json.loads(second.stdout)
    jsonschema.validate(document, schema_of("bench-matrix"))
    matrix = document["matrix"]
    assert [cell["settings"] for cell in matrix["cells"]] == [
        {"batch_size": 2, "dtype": dtype} for dtype in ("float32", "bfloat16")
    ]
    assert [cell["is_reference"] for cell in matrix["cells"]] == [True, False]
    assert (matrix["num_reused"], matrix["num_missing"]) == (1, 0)
    assert matrix["answer"][:20] in call(project, "show", "last").stdout
    assert not list((project / ".pyrometer" / "unfinished").iterdir())


@pytest.mark.slow
def test_cold_starts_are_beside_the_measurement(bench):
    done = bench("--cold", "2", "--budget", "500ms", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("bench"))
    assert document["evidence"]["measurement"]["median_s"] > 0
    assert len(document["cold"]["later"]) == 1


@pytest.mark.slow
def test_a_long_run_is_beside_the_measurement(bench):
    done = bench("--soak", "3s", "--budget", "300ms", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("bench"))
    assert len(document["soak"]["windows"]) == 12
    assert document["soak"]["latency"]["trend"] in {"rising", "falling", "flat", "undecided"}


@pytest.mark.exhaustive
def test_processes_are_what_is_counted(bench):
    done = bench("--vs", "model.py:work", "--processes", "3", "--json")
    assert done.returncode in {0, 3}, done.stderr
    document = json.loads(done.stdout)
    assert document["versus"] == "model.py:work"
    assert document["verdict"]["num_processes"] == 3
    assert document["verdict"]["outcome"] in {"same", "undecided"}
