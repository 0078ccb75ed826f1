"""The environment of this very process, and what must never get into it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch
from click.testing import CliRunner

from pyrometer.cli.env import command
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.fingerprint import fingerprint
from pyrometer.hardware.record import Environment
from pyrometer.hardware.torch_flags import RECORDED_VARIABLES, denormals_flushed, read_settings
from pyrometer.record import from_json, to_json
from pyrometer.report.documents import EnvironmentDocument

CANARY = "canary-value-5f1e"


def python(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_this_machine():
    environment = read_environment()
    assert environment.torch == torch.__version__
    assert environment.python == ".".join(map(str, sys.version_info[:3]))
    assert environment.threads == torch.get_num_threads()
    assert 0 < environment.cpu.usable_cpus <= environment.cpu.logical_cores
    assert environment.memory_bytes > 2**20
    assert environment.fingerprint == fingerprint(environment)
    assert from_json(Environment, to_json(environment)) == environment


def test_reading_twice_gives_the_same():
    assert read_environment() == read_environment()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_cuda_is_left_alone():
    assert read_environment().gpus == []
    assert not torch.cuda.is_initialized()


@pytest.mark.exhaustive
def test_the_number_of_interop_threads_can_still_be_set_afterwards():
    python(
        "import torch; from pyrometer.hardware.environment import read_environment; read_environment();"
        "torch.set_num_interop_threads(3); assert read_environment().interop_threads == 3"
    )


def test_no_environment_value_but_the_recorded_ones(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", CANARY)
    monkeypatch.setenv("PYTORCH_SOMETHING_ELSE", CANARY)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environment = read_environment()
    assert CANARY not in to_json(environment).decode()
    assert environment.settings["OMP_NUM_THREADS"] == "7"


def test_every_recorded_variable_reaches_the_settings():
    settings = read_settings(dict.fromkeys(RECORDED_VARIABLES, "x") | {"HOME": CANARY})
    assert {name for name, value in settings.items() if value == "x"} == set(RECORDED_VARIABLES)
    assert CANARY not in settings.values()


def test_settings_follow_the_flags():
    quiet = read_settings({})
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.backends.cudnn.benchmark = True
    torch.set_default_dtype(torch.float64)
    torch.autograd.set_detect_anomaly(mode=True)
    try:
        loud = read_settings({})
    finally:
        torch.use_deterministic_algorithms(mode=False)
        torch.backends.cudnn.benchmark = False
        torch.set_default_dtype(torch.float32)
        torch.autograd.set_detect_anomaly(mode=False)
    changed = {name: (quiet[name], loud[name]) for name in quiet if quiet[name] != loud[name]}
    assert changed == {
        "deterministic_algorithms": ("off", "warn"),
        "cudnn.benchmark": ("off", "on"),
        "default_dtype": ("float32", "float64"),
        "anomaly_detection": ("off", "on"),
    }
    assert read_settings({}) == quiet


def test_flushing_of_denormals_is_seen():
    assert not denormals_flushed()
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        assert denormals_flushed()
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.slow
def test_the_precision_of_float32_is_read_however_it_was_set():
    """Recent releases of torch warn or raise when one interface reads what the other has set."""
    settings = [
        "torch.set_float32_matmul_precision('medium')",
        "torch.backends.cudnn.allow_tf32 = False",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.fp32_precision = 'ieee'",
    ]
    # Each in a process of its own, because some cannot be taken back; forks, because importing torch takes long.
    printed = python(
        "import os, json, torch, warnings\n"
        "from pyrometer.hardware.torch_flags import read_settings\n"
        "before = read_settings({})\n"
        f"for setting in {settings}:\n"
        "    if os.fork() == 0:\n"
        "        with warnings.catch_warnings():\n"
        "            warnings.simplefilter('ignore')\n"
        "            exec(setting)\n"
        "        after = read_settings({})\n"
        "        print(json.dumps([name for name in before if before[name] != after[name]]), flush=True)\n"
        "        os._exit(0)\n"
        "    assert os.wait()[1] == 0, setting\n"
    )
    changed = [json.loads(line) for line in printed.splitlines()]
    assert len(changed) == len(settings)
    for names in changed:
        assert names
        assert all("precision" in name or "tf32" in name for name in names)


def test_reading_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_environment()


def test_importing_the_records_imports_no_torch():
    python(
        "import sys\n"
        "import pyrometer.hardware.environment, pyrometer.hardware.conditions, pyrometer.hardware.peaks\n"
        "import pyrometer.hardware.datasheet, pyrometer.hardware.roofline, pyrometer.hardware.fingerprint\n"
        "assert 'torch' not in sys.modules"
    )


def test_env_prints_one_document():
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == 0
    assert from_json(EnvironmentDocument, result.stdout).environment == read_environment()


def test_env_prints_a_table():
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0
    environment = read_environment()
    for figure in (environment.cpu.model, environment.torch, environment.fingerprint):
        assert figure in result.stdout
