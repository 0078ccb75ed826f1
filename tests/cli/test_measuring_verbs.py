"""`bench` and `calibrate` on real programs, through the real command line."""

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

# Ctrl-C works as in a terminal, also where a shell's background job would ignore it.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from pyrometer.cli.main import run; run()"
)
MODEL = """
import time
import torch
from torch import nn
import pyrometer as pm

def small():
    print("a factory that prints")
    return pm.Inference(nn.Linear(64, 64), torch.randn(8, 64), unit="frames", per_step=8)

def large():
    return pm.Inference(nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)]), torch.randn(8, 64), unit="frames")

def sleepy():
    return pm.Call(time.sleep, 0.02)

def slow():
    return pm.Call(time.sleep, 0.3)

def signalling():
    calls = iter(range(10**9))
    def step():
        time.sleep(0.005)
        if next(calls) == 40:
            open("running", "w").close()
    return pm.Call(step)

def hungry():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    return pm.Call(lambda: torch.empty(1 << 34))

def fails_at_37():
    calls = iter(range(10**9))
    def step():
        time.sleep(0.001)
        if next(calls) == 36:
            raise ValueError("bad batch")
    return pm.Call(step)

def raises():
    raise RuntimeError("no such split")

def nothing():
    return None
"""
BENCH_KEYS = {
    "median_s",
    "mean_s",
    "p50_s",
    "p90_s",
    "p95_s",
    "p99_s",
    "ci_low_s",
    "ci_high_s",
    "confidence",
    "num_samples",
    "effective_num_samples",
    "first_call_s",
    "compile_s",
    "warmup_steps",
    "steady",
    "jitter",
    "throughput",
    "unit",
    "peak_bytes",
    "warnings",
}
VERDICT_KEYS = {"outcome", "ratio", "ci_low", "ci_high", "confidence", "margin", "num_blocks", "elapsed_s"}


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def pyrometer(project, *arguments):
    return subprocess.run(
        [sys.executable, "-c", ENTRY, *arguments], capture_output=True, text=True, check=False, cwd=project
    )


@pytest.mark.slow
def test_bench_prints_one_document_and_stores_it(project, call):
    done = call(project, "bench", "model.py:small", "--budget", "300ms", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("bench"))
    assert set(document["evidence"]["measurement"]) >= BENCH_KEYS
    assert document["evidence"]["measurement"]["unit"] == "frames"
    assert document["evidence"]["environment"]["fingerprint"]
    assert "a factory that prints" in done.stderr
    again = call(project, "show", "last", "--json")
    assert json.loads(again.stdout)["evidence"]["measurement"] == document["evidence"]["measurement"]


@pytest.mark.measuring
def test_bench_versus_gives_the_verdict(project, call):
    (project / "pyproject.toml").write_text("[tool.pyrometer]\nseed = 3\n")
    done = call(
        project,
        "bench",
        "model.py:small",
        "--vs",
        "model.py:large",
        "--budget",
        "5s",
        "--margin",
        "4%",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert set(verdict) >= VERDICT_KEYS
    assert verdict["outcome"] == "slower"
    assert verdict["ratio"] > 1.5
    assert verdict["margin"] == pytest.approx(0.04)
    assert verdict["seed"] == 3


def test_an_undecided_comparison_exits_with_three(project, call):
    done = call(project, "bench", "model.py:slow", "--vs", "model.py:slow", "--budget", "100ms", "--no-store")
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines()[1].startswith("undecided: a paired block takes about ")


def test_a_failure_keeps_what_was_measured_and_exits_with_four(project, call):
    done = call(project, "bench", "model.py:fails_at_37", "--budget", "5s", "--json")
    assert done.returncode == 4
    measurement = json.loads(done.stdout)["evidence"]["measurement"]
    assert measurement["failure"].startswith("step 37 raised ValueError: bad batch")
    assert measurement["num_samples"] + measurement["warmup_steps"] == 36


@pytest.mark.exhaustive
def test_running_out_of_memory_is_the_users_failure(project):
    done = pyrometer(project, "bench", "model.py:hungry", "--budget", "1s")
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "step 1 raised" in done.stderr


@pytest.mark.parametrize(
    ("factory", "code", "said"),
    [("raises", 4, "RuntimeError: no such split"), ("nothing", 2, "nothing"), ("smal", 2, "small")],
)
def test_a_factory_that_cannot_be_used_is_one_line(project, call, factory, code, said):
    done = call(project, "bench", f"model.py:{factory}")
    assert done.returncode == code
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def interrupted(project, *arguments):
    """The document of a command that gets Ctrl-C after its program has made forty steps."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            ENTRY,
            "bench",
            "model.py:signalling",
            *arguments,
            "--budget",
            "300s",
            "--json",
        ],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (project / "running").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    return json.loads(out)


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_measured_and_says_so(project):
    measurement = interrupted(project)["evidence"]["measurement"]
    assert measurement["interrupted"]
    assert measurement["num_samples"] > 5
    assert "interrupted" in {caveat["code"] for caveat in measurement["warnings"]}


@pytest.mark.exhaustive
def test_ctrl_c_keeps_the_blocks_of_a_comparison(project):
    verdict = interrupted(project, "--vs", "model.py:sleepy", "--margin", "0.1%")["verdict"]
    assert verdict["interrupted"]
    assert verdict["num_blocks"] >= 1


@pytest.mark.measuring
@pytest.mark.slow
def test_calibrate_says_what_can_be_told_apart(project):
    done = pyrometer(project, "calibrate", "model.py:small", "--budget", "8s", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema_of("calibrate"))
    (resolution,) = document["calibration"]["resolutions"]
    assert 0 < resolution["resolves_60s"] < resolution["resolves_10s"]
    assert resolution["false_share"] <= 0.03
    assert resolution["outcome"] != "slower"
    assert document["calibration"]["peaks"]["matmul_flop_per_s"]["float32"]["best"] > 1e6
