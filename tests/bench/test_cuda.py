"""On a machine with an NVIDIA GPU: steps are timed on the device, compared there, and its allocator is asked for memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch.cuda can use"),
]


def products(count: int, n: int = 2048) -> pm.Call:
    """`count` matrix products as one step, so that its length is known to be in proportion."""
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def run():
        for _ in range(count):
            torch.mm(a, a, out=out)

    return pm.Call(run, name=f"{count} products", device="cuda")


def test_a_step_is_timed_on_the_device_and_on_the_host():
    n = 8192
    m = pm.measure(products(1, n), budget_s=3)
    assert m.clock == "device events"
    assert m.host_s < 0.5 * m.median_s, "the host returns long before the device is done"
    assert m.latency_s > 0.9 * m.median_s
    assert 1e12 < 2 * n**3 / m.median_s < 3e15, "2n³ FLOP in that time"
    assert m.steady


def test_peak_memory_is_the_allocators():
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    x = torch.randn(8192, 4096, device="cuda")
    m = pm.measure(pm.Inference(model, x), budget_s=2)
    assert m.memory.source == "torch's caching allocator"
    resident = sum(parameter.nbytes for parameter in model.parameters()) + x.nbytes
    assert resident + x.nbytes <= m.peak_bytes <= torch.cuda.memory_allocated() + 8 * x.nbytes
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
