"""On a machine with an NVIDIA GPU: the environment, the peaks, and the conditions with and without nvidia-ml-py."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.environment import read_environment
from pyrometer.hardware.gpu import current_gpu_uuid
from pyrometer.hardware.nvml import read_gpu
from pyrometer.hardware.peak_search import measure_peaks
from pyrometer.hardware.peaks import Peaks
from pyrometer.hardware.timing import best_time
from pyrometer.hardware.torch_flags import read_settings

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch.cuda can use")
needs_nvml = pytest.mark.skipif(importlib.util.find_spec("pynvml") is None, reason="needs nvidia-ml-py")

DATA_CENTRE = {"A100", "H100", "H200", "B200"}


def is_data_centre() -> bool:
    return any(name in torch.cuda.get_device_name() for name in DATA_CENTRE)


@pytest.fixture(scope="module")
def peaks() -> Peaks:
    return measure_peaks(torch.device("cuda"), budget_s=15)


def busy() -> torch.Tensor:
    x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    for _ in range(200):
        x = torch.nn.functional.normalize(x @ x)
    torch.cuda.synchronize()
    return x


def test_the_environment_names_the_gpu():
    gpus = read_environment().gpus
    assert len(gpus) == torch.cuda.device_count()
    assert gpus[0].name == torch.cuda.get_device_name(0)
    assert gpus[0].memory_bytes == torch.cuda.get_device_properties(0).total_memory
    assert gpus[0].capability == ".".join(map(str, torch.cuda.get_device_capability(0)))
    assert read_environment() == read_environment()


def test_reading_the_environment_creates_no_context():
    code = (
        "import torch\n"
        "from pyrometer.hardware.environment import read_environment\n"
        "assert read_environment().gpus\n"
        "assert not torch._C._cuda_hasPrimaryContext(0)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


def test_the_fingerprint_does_not_depend_on_whether_cuda_is_in_use():
    code = (
        "import torch\n"
        "from pyrometer.hardware.environment import read_environment\n"
        "before = read_environment(); torch.ones(1, device='cuda'); assert read_environment() == before\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


def test_arithmetic(peaks: Peaks):
    assert set(peaks.matmul_flop_per_s) | {"tf32"} == {"float32", "tf32", "bfloat16", "float16", "int8"}
    assert set(peaks.conv_flop_per_s) | {"tf32"} == {"float32", "tf32", "bfloat16", "float16"}
    rates = [*peaks.matmul_flop_per_s.values(), *peaks.conv_flop_per_s.values()]
    assert all(peak.best >= peak.median > 0 for peak in rates)
    if is_data_centre():
        # Were one setting to hold for both, they would be equal.
        assert peaks.matmul_flop_per_s["tf32"].best > 2 * peaks.matmul_flop_per_s["float32"].best
        assert peaks.matmul_flop_per_s["bfloat16"].best > 100e12
        assert peaks.matmul_flop_per_s["int8"].best > 100e12
        assert peaks.matmul_flop_per_s["tf32"].best > 2 * peaks.matmul_flop_per_s["float32"].best


def test_copies(peaks: Peaks):
    copies = {name: peak.best for name, peak in peaks.copy_bytes_per_s.items()}
    transfers = {"h2d_pinned", "h2d_pageable", "d2h_pinned", "d2h_pageable"}
    assert set(copies) == {"memory", "l2"} | transfers, peaks.skipped
    if is_data_centre():
        assert copies["memory"] > 1e12
    assert copies["l2"] > 0.5 * copies["memory"]
    assert copies["h2d_pinned"] < copies["memory"]
    assert copies["h2d_pinned"] > 1e9


def test_costs(peaks: Peaks):
    costs = {name: peak.best for name, peak in peaks.cost_s.items()}
    assert set(costs) == {"launch", "small_kernel", "synchronize", "round_trip"}
    assert all(0 < cost < 1e-2 for cost in costs.values())
    assert 0.5e-6 < costs["launch"] < 100e-6
    assert costs["round_trip"] > costs["launch"]
    assert costs["round_trip"] > costs["synchronize"]
    assert costs["round_trip"] > costs["small_kernel"]


def test_no_peak_exceeds_the_datasheet(peaks: Peaks):
    """Convolutions may (they are counted as direct ones), matrix products and memory may not; boost clocks vary a bit."""
    if peaks.datasheet is None:
        pytest.skip(f"no datasheet for {peaks.name}")
    for dtype in peaks.matmul_flop_per_s:
        if dtype in peaks.datasheet.flop_per_s:
            assert peaks.matmul_flop_per_s[dtype].best < 1.1 * peaks.datasheet.flop_per_s[dtype]
    assert peaks.copy_bytes_per_s["memory"].best < 1.05 * peaks.datasheet.memory_bytes_per_s


def test_the_budget_holds(peaks: Peaks):
    assert peaks.elapsed_s < 3 * 15
    assert peaks.device == f"cuda:{torch.cuda.current_device()}"


def test_settings_and_random_state_are_left_alone():
    flags, state = read_settings(os.environ), torch.cuda.get_rng_state()
    measure_peaks(torch.device("cuda"), budget_s=0.5)
    assert read_settings(os.environ) == flags
    assert torch.equal(torch.cuda.get_rng_state(), state)


def test_memory_is_given_back():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    measure_peaks(torch.device("cuda"), budget_s=0.5)
    # cuBLAS keeps its workspace.
    assert torch.cuda.memory_reserved() - before < 100 * 2**20


def test_the_best_time_is_the_devices():
    """Eight times the work is enqueued as fast and takes about eight times as long."""
    small, large = (torch.randn(n, n, device="cuda") for n in (2048, 4096))
    device = torch.device("cuda")
    ratio = best_time(lambda: large @ large, device) / best_time(lambda: small @ small, device)
    assert 4 < ratio < 16


@needs_nvml
def test_conditions_with_nvml():
    with ConditionsProbe() as probe:
        busy()
        probe.sample()
    seen = probe.conditions
    assert seen is not None
    assert seen.gpu_temperature_c is not None
    assert 0 < seen.gpu_temperature_c < 120
    assert seen.throttled is not None
    assert seen.gpu_clock_ratio is None or 0 < seen.gpu_clock_ratio <= 1


@needs_nvml
def test_the_driver_and_the_gpu_can_be_asked():
    torch.ones(1, device="cuda")
    uuid = current_gpu_uuid()
    assert uuid is not None
    reading = read_gpu(uuid)
    assert reading is not None
    assert reading.clock_mhz is not None
    assert reading.clock_mhz > 100
    assert read_environment().gpus[0].driver
    assert read_gpu("GPU-00000000-0000-0000-0000-000000000000") is None


def test_conditions_without_nvml(monkeypatch: Any):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with ConditionsProbe() as probe:
        busy()
    seen = probe.conditions
    assert seen is not None
    assert (seen.gpu_temperature_c, seen.gpu_clock_ratio, seen.other_gpu_processes) == (None, None, None)
    assert read_environment().gpus[0].driver is None
