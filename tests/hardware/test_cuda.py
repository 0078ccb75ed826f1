"""What only a GPU can show: device time, the allocator's peak, the management library, real peaks.

Skipped as a whole without a CUDA device. The limits hold for every data-centre GPU since the A100.
"""

from __future__ import annotations

import os
import sys

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.hardware.conditions import ConditionsProbe
from pyrometer.hardware.peaks import measure_peaks
from pyrometer.hardware.torch_flags import read_settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(scope="module")
def peaks():
    flags, allocated = read_settings(os.environ), torch.cuda.memory_allocated()
    state = torch.cuda.get_rng_state()
    measured = measure_peaks(torch.device("cuda"), budget_s=30)
    assert read_settings(os.environ) == flags
    assert torch.cuda.memory_allocated() == allocated
    assert torch.equal(torch.cuda.get_rng_state(), state)
    return measured


def products(count, n=2048):
    """A call that issues `count` matrix products; several are one step, so that its length is known."""
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def run():
        for _ in range(count):
            torch.mm(a, a, out=out)

    return pm.Call(run, name=f"{count} products", device="cuda")


def test_the_peaks_are_those_of_a_gpu(peaks):
    assert peaks.device == "cuda:0"
    assert peaks.name == torch.cuda.get_device_name(0)
    assert peaks.matmul_flop_per_s["bfloat16"].best > 100e12
    assert peaks.matmul_flop_per_s["float16"].best > 100e12
    assert peaks.conv_flop_per_s["bfloat16"].best > 50e12
    assert peaks.copy_bytes_per_s["memory"].best > 1e12
    assert peaks.elapsed_s < 3 * 30


def test_no_peak_exceeds_what_the_vendor_prints(peaks):
    if peaks.datasheet is None:
        pytest.skip(f"{peaks.name} is not in the table")
    for dtype, peak in peaks.matmul_flop_per_s.items():
        assert 0.2 < peak.best / peaks.datasheet.flop_per_s[dtype] < 1.05, dtype
    assert 0.5 < peaks.copy_bytes_per_s["memory"].best / peaks.datasheet.memory_bytes_per_s < 1.05


def test_tensor_cores_in_tf32_are_told_from_float32(peaks):
    assert peaks.matmul_flop_per_s["tf32"].best > 2 * peaks.matmul_flop_per_s["float32"].best


def test_copies_are_ordered_as_the_hardware_is(peaks):
    copies = {name: peak.best for name, peak in peaks.copy_bytes_per_s.items()}
    assert copies["l2"] > 0.5 * copies["memory"]
    for direction in ("h2d", "d2h"):
        assert copies[f"{direction}_pinned"] > 0.9 * copies[f"{direction}_pageable"]
        assert 1e9 < copies[f"{direction}_pinned"] < copies["memory"]


def test_talking_to_the_device_costs_microseconds(peaks):
    costs = {name: peak.best for name, peak in peaks.cost_s.items()}
    assert 0.5e-6 < costs["launch"] < 100e-6
    assert 0 < costs["synchronize"] < costs["round_trip"] < 1e-3
    assert 0.1e-6 < costs["small_kernel"] < costs["round_trip"]


def test_every_peak_has_its_spread(peaks):
    rates = [peaks.matmul_flop_per_s, peaks.conv_flop_per_s, peaks.copy_bytes_per_s]
    assert all(peak.best >= peak.median > 0 for group in rates for peak in group.values())
    assert all(0 < peak.best <= peak.median for peak in peaks.cost_s.values())


def test_the_environment_names_the_gpu():
    environment = pm.read_environment()
    assert [gpu.name for gpu in environment.gpus] == [
        torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())
    ]
    assert environment.gpus[0].memory_bytes > 2**30
    assert environment.torch_cuda == torch.version.cuda


def test_conditions_tell_the_gpus_temperature_and_clock():
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py")
    work = products(200).function
    with ConditionsProbe() as probe:
        for _ in range(5):
            work()
            probe.sample()
        torch.cuda.synchronize()
    assert 10 < probe.conditions.gpu_temperature_c < 120
    assert 0 < probe.conditions.gpu_clock_ratio <= 1
    assert probe.conditions.throttled in {True, False}


def test_conditions_leave_the_gpu_out_without_the_management_library(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "pynvml", None
    )  # what Python puts there for a module that cannot be imported
    torch.cuda.synchronize()
    with ConditionsProbe() as probe:
        products(10).function()
    assert probe.conditions.gpu_temperature_c is None
    assert probe.conditions.gpu_clock_ratio is None
    assert probe.conditions.logical_cpus >= 1
    assert pm.read_environment().gpus[0].driver is None


def test_a_step_is_timed_on_the_device_and_on_the_host():
    n = 8192
    m = pm.measure(products(1, n), budget_s=3)
    assert m.clock == "device events"
    assert m.host_s < 0.5 * m.median_s, "the host returns long before the device is done"
    assert m.latency_s > 0.9 * m.median_s
    assert 50e12 < 2 * n**3 / m.median_s < 3e15
    assert m.steady


def test_peak_memory_is_the_allocators():
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    x = torch.randn(8192, 4096, device="cuda")
    m = pm.measure(pm.Inference(model, x), budget_s=2)
    assert m.memory.source == "torch's caching allocator"
    in_place = sum(p.nbytes for p in model.parameters()) + x.nbytes
    assert in_place + x.nbytes <= m.peak_bytes <= torch.cuda.memory_allocated() + 8 * x.nbytes
    assert m.memory.growth_bytes_per_step == pytest.approx(0, abs=1)


def test_half_as_much_work_again_is_slower():
    verdict = pm.compare(products(10), products(15), budget_s=20)
    assert verdict.outcome == "slower"
    assert verdict.metric == "device"
    assert verdict.ci_low <= verdict.ratio <= verdict.ci_high
    assert verdict.ratio == pytest.approx(1.5, rel=0.1)


def test_the_same_work_is_the_same():
    verdict = pm.compare(products(10), products(10), budget_s=20)
    assert verdict.outcome == "same"
    assert verdict.metric == "device"


def test_training_shows_the_copy_to_the_device():
    model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batches = [(torch.randn(1024, 2048), torch.randint(10, (1024,))) for _ in range(4)]
    work = pm.Training(model, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters()), batches)
    m = pm.measure(work, budget_s=5)
    shares = {phase.name: phase.share for phase in m.phases}
    assert {"h2d", "forward", "backward", "optimizer"} <= set(shares)
    assert shares["h2d"] > 0.05, "8 MiB of pageable memory per step"
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
