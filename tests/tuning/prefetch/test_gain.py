"""The prefetcher proves its gain, or stays out."""

from __future__ import annotations

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import PhaseTime
from pyrometer.errors import InputError, UserProgramError
from pyrometer.record import from_json, to_json
from pyrometer.tuning.prefetch.gain import (
    PrefetchGain,
    conclude_gain,
    overlap_of,
    predict_overlap,
    prefetched,
    try_prefetch,
)
from pyrometer.tuning.prefetch.prefetcher import DevicePrefetcher
from pyrometer.workload.training import Training

pytestmark = pytest.mark.measuring

GPU = torch.device("cuda:0")


def training(batches=None, loss=None):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    data = TensorDataset(torch.randn(12, 4), torch.randn(12, 1))
    loader = DataLoader(data, batch_size=4, shuffle=True) if batches is None else batches
    return Training(model, loss or nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), loader)


def verdict(outcome, ratio):
    return Verdict(
        outcome=outcome,
        ratio=ratio,
        ci_low=ratio * 0.98,
        ci_high=ratio * 1.02,
        confidence=0.99,
        margin=0.05,
        smallest_effect=0.02,
        num_blocks=40,
        elapsed_s=2.0,
    )


@given(copy_s=st.floats(0, 1e3), compute_s=st.floats(0, 1e3))
def test_a_step_takes_the_longer_instead_of_the_sum(copy_s, compute_s):
    predicted = predict_overlap(copy_s, compute_s)
    assert predicted.serial_s == copy_s + compute_s
    assert predicted.overlapped_s == max(copy_s, compute_s)
    assert 0.5 <= predicted.ratio <= 1


def test_negative_times_are_refused():
    with pytest.raises(InputError, match="must not be negative"):
        predict_overlap(-1.0, 2.0)


def test_on_the_cpu_it_says_at_once_that_there_is_nothing_to_overlap():
    class Untouched:
        def __iter__(self):
            raise AssertionError("nothing needs to be fetched")

    found = try_prefetch(training(Untouched()))
    assert (found.outcome, found.keep, found.verdict, found.use) == ("nothing to overlap", False, None, None)
    assert "on the CPU" in found.reason


@pytest.mark.parametrize(
    ("outcome", "ratio", "expected"),
    [
        ("faster", 0.8, "faster"),
        ("same", 1.0, "no gain"),
        ("slower", 1.2, "no gain"),
        ("undecided", 0.9, "undecided"),
    ],
)
def test_only_what_was_proved_is_kept(outcome, ratio, expected):
    found = conclude_gain(verdict(outcome, ratio), device=GPU, depth=3, pin=True, batch_bytes=1000)
    assert found.outcome == expected
    assert found.keep == (outcome == "faster")
    assert found.extra_bytes == 3000
    assert found.use == ('DevicePrefetcher(loader, "cuda:0", depth=3, pin=True)' if found.keep else None)
    assert from_json(PrefetchGain, to_json(found)) == found


def test_phases_of_a_measured_step_give_the_prediction():
    measured = measure(training(), budget_s=0.1, phases=False)
    with pytest.raises(InputError, match="has none"):
        overlap_of(measured)
    times = {"data": 4e-3, "h2d": 1e-3, "forward": 2e-3, "backward": 3e-3, "optimizer": 1e-3, "rest": 9e-3}
    phases = [PhaseTime(name=name, median_s=0.0, mean_s=time_s, share=0.0) for name, time_s in times.items()]
    predicted = overlap_of(msgspec.structs.replace(measured, phases=phases))
    assert predicted == predict_overlap(1e-3, 6e-3)


def test_the_prefetched_work_trains_on_the_same_batches(simulated):
    class Prompt(simulated):
        """Does everything at once, since a real model reads the tensors."""

        def record(self):
            event = super().record()
            self.drain()
            return event

    def losses(work):
        with work.open() as session:
            torch.manual_seed(3)
            return [session.step(session.prepare()).item() for _ in range(7)]

    work = training()
    assert losses(prefetched(work, streams=Prompt())) == losses(work)


@pytest.mark.slow
def test_where_it_brings_nothing_it_stays_out(simulated):
    class Prompt(simulated):
        def record(self):
            event = super().record()
            self.drain()
            return event

    work = training()
    before = {name: value.clone() for name, value in work.parts.model.state_dict().items()}
    found = try_prefetch(work, budget_s=4.0, streams=Prompt())
    assert not found.keep
    assert found.verdict is not None
    assert found.extra_bytes == 2 * 4 * (4 + 1) * 4
    for name, value in work.parts.model.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="budget: got 0"):
        try_prefetch(training(), budget_s=0)
    with pytest.raises(InputError, match="come from a DevicePrefetcher"):
        try_prefetch(training(DevicePrefetcher([], "cpu")))


def test_a_failing_loader_is_the_users_failure(simulated):
    def batches():
        yield torch.zeros(4, 4), torch.zeros(4, 1)
        raise ValueError("broken shard")

    class Once:
        def __iter__(self):
            return batches()

    with pytest.raises(UserProgramError, match="broken shard"):
        try_prefetch(training(Once()), budget_s=1.0, streams=simulated())


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_large_pinned_batches_gain():
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1)).cuda()
    data = [(torch.randn(4096, 4096).pin_memory(), torch.randn(4096, 1).pin_memory()) for _ in range(4)]
    work = Training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 1e-6), data)
    found = try_prefetch(work, budget_s=20.0)
    assert found.predicted is not None
    assert found.keep
