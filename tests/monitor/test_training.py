"""A training under watch is told step by step, judged, and not changed by a bit."""

from __future__ import annotations

import math

import pytest
import torch
from torch_points import points

import pyrometer as pm
from pyrometer.errors import InputError
from pyrometer.monitor.detecting.listener import Detection
from pyrometer.monitor.detecting.numerics import NormJump


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
        )

    def forward(self, x):
        return self.layers(x)


def batches(num):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(4, 8, generator=generator), torch.randn(4, 1, generator=generator)) for _ in range(num)
    ]


def train(net, optimizer, data, *, training=None, spoil=None):
    """A loop as people write it; `spoil` may change a loss."""
    torch.manual_seed(2)
    losses = []
    for number, (x, y) in enumerate(data if training is None else training.batches(data)):
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss = loss if spoil is None else spoil(number, loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if training is not None:
            training.step(loss)
        losses.append(loss.item())
    return losses


def watched(make, num=30, *, every=1, spoil=None, detection=None, flush_every=None):
    """Train a net, and give what its monitor and detection saw."""
    monitor, detection = make(), detection or Detection()
    monitor.add(detection)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def spoiled(number, loss):
        if flush_every and number % flush_every == 0:
            monitor.flush()
        return loss if spoil is None else spoil(number, loss)

    with monitor.training(optimizer, every=every, detection=detection) as training:
        losses = train(net, optimizer, batches(num), training=training, spoil=spoiled)
    monitor.flush()
    return monitor, losses


def test_a_training_is_not_changed_by_a_bit(make):
    plain, net = Net(), Net()
    losses = train(plain, torch.optim.Adam(plain.parameters()), batches(25))
    optimizer = torch.optim.Adam(net.parameters())
    before, monitor = points(), make()
    with monitor.training(optimizer, every=2) as training:
        assert train(net, optimizer, batches(25), training=training) == losses
    assert all(map(torch.equal, plain.parameters(), net.parameters()))
    assert points() == before
    assert not optimizer._optimizer_step_pre_hooks


def test_steps_loss_norm_and_data_are_told(make):
    monitor, losses = watched(make)
    tick = monitor.last(60)
    assert tick.calls["step"].num_ended == 30
    assert tick.calls["step"].in_flight == 0
    assert tick.gauges["training_loss"] == pytest.approx(losses[-1])
    assert tick.gauges["training_gradient_norm"] > 0
    assert 0 < tick.gauges["training_data_share"] < 1
    assert tick.counters.get('training_non_finite{of="loss"}', 0) == 0
    assert monitor._collector.fault_count.value() == 0


def test_a_slow_loader_is_seen_in_the_share_of_data(make):
    class Clock:
        now = 0

        def __call__(self):
            return self.now

    clock, monitor = Clock(), make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyrometer.monitor.training.perf_counter_ns", clock)
        with monitor.training() as training:

            def slow():
                for number in range(10):
                    clock.now += 3_000_000
                    yield number

            for _ in training.batches(slow()):
                clock.now += 1_000_000
                training.step(0.5)
            clock.now += 10**12  # an evaluation is no step
            for _ in training.batches([1]):
                training.step(0.25)
    monitor.flush()
    assert monitor.last(60).gauges["training_data_share"] == pytest.approx(0.75)
    assert monitor.last(60).calls["step"].latency_s.high == pytest.approx(0.004)
    assert monitor.last(60).gauges["training_loss"] == 0.25


def test_a_batch_of_accumulation_belongs_to_the_step_that_it_ends_in(make):
    monitor = make()
    with monitor.training() as training:
        for number, _ in enumerate(training.batches(range(12)), 1):
            if number % 4 == 0:
                training.step(1.0)
    monitor.flush()
    assert monitor.last(60).calls["step"].num_ended == 3


def test_nan_in_a_loss_is_counted_and_alarms(make):
    monitor, _ = watched(make, spoil=lambda number, loss: loss * math.nan if number == 7 else loss)
    tick = monitor.last(60)
    assert tick.counters['training_non_finite{of="loss"}'] == 23  # it has spoilt the weights
    assert tick.counters['training_non_finite{of="gradient_norm"}'] == 23
    assert math.isfinite(tick.gauges["training_loss"])
    assert "step.loss/non-finite" in monitor.snapshot()["alarms"]
    assert "step.gradient_norm/non-finite" in monitor.snapshot()["alarms"]


def test_gradients_that_explode_alarm(make):
    monitor, _ = watched(make, spoil=lambda number, loss: loss * (1000 if number > 26 else 1))
    assert "step.gradient_norm/norm-jump" in monitor.snapshot()["alarms"]


def test_gradients_that_vanish_alarm(make):
    monitor, _ = watched(make, spoil=lambda number, loss: loss * (1e-9 if number > 26 else 1))
    assert "step.gradient_norm/norm-jump" in monitor.snapshot()["alarms"]


def test_a_sound_training_raises_no_alarm(make):
    monitor, _ = watched(make, 400, flush_every=20)
    # How long steps take is up to what else runs here.
    assert [one for one in monitor.snapshot()["alarms"] if "latency" not in one] == []


def test_a_loss_that_climbs_alarms(make):
    def climbing(number, loss):
        return loss + max(0, number - 300) * 0.2

    monitor, _ = watched(make, 400, spoil=climbing, flush_every=10)
    assert "step.loss/cusum" in monitor.snapshot()["alarms"]


def test_norms_are_sampled(make):
    monitor = make()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    told = []
    with monitor.training(optimizer, every=10) as training:
        tell = training.tell
        training.tell = lambda figure, value: (told.append(figure), tell(figure, value))
        train(net, optimizer, batches(30), training=training)
    assert (told.count("loss"), told.count("gradient_norm")) == (30, 3)


def test_the_norm_before_clipping_may_be_given(make):
    monitor = make()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with monitor.training(optimizer, every=1) as training:
        for x, y in batches(3):
            loss = torch.nn.functional.mse_loss(net(x), y)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
            optimizer.step()
            optimizer.zero_grad()
            training.step(loss, grad_norm=norm)
    monitor.flush()
    assert monitor.last(60).gauges["training_gradient_norm"] == pytest.approx(float(norm))
    assert float(norm) > 1e-2


def test_the_scale_of_mixed_precision_is_told(make):
    monitor, net = make(), Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with monitor.training(optimizer, scaler=scaler, every=1) as training:
        for x, y in batches(3):
            loss = torch.nn.functional.mse_loss(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            training.step(loss)
    monitor.flush()
    gauges = monitor.last(60).gauges
    assert gauges["training_loss_scale"] == 1024.0
    assert gauges["training_gradient_norm"] < 100  # unscaled


def test_what_cannot_be_read_is_a_fault_and_no_exception(make):
    monitor = make()
    with monitor.training() as training:
        training.step("no loss")
        training.look_at(None)
    assert monitor._collector.fault_count.value() == 2


def test_an_exception_of_the_loop_goes_on_and_counts(make):
    monitor, net = make(), Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with pytest.raises(ZeroDivisionError), monitor.training(optimizer):
        raise ZeroDivisionError
    monitor.flush()
    assert monitor.last(60).calls["step"].errors == {"ZeroDivisionError": 1}
    assert not optimizer._optimizer_step_pre_hooks


def test_trainings_that_ended_leave_nothing_behind(make):
    monitor = make()
    signals, listeners = len(monitor._collector.signals), len(monitor._collector.listeners)
    for _ in range(3):
        with monitor.training() as training:
            training.step(1.0)
        monitor.flush()
    assert len(monitor._collector.signals) == signals
    assert len(monitor._collector.listeners) == listeners
    assert monitor.snapshot()["requests"] == 3


def test_disabled_it_does_nothing(make, monkeypatch):
    monkeypatch.setenv("PYROMETER_DISABLE", "1")
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    with make().training(optimizer) as training:
        assert list(training.batches([1, 2])) == [1, 2]
        training.step(torch.ones(()))
        assert not optimizer._optimizer_step_pre_hooks


def test_the_training_loop_tells_it_its_steps(make):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    work = pm.Training(net, torch.nn.functional.mse_loss, optimizer, batches(8), accumulate=2)
    monitor = make()
    with monitor.training(optimizer, every=1) as training:
        run = pm.TrainingLoop(work, callbacks=[training], log_every=1).run(steps=12)
    monitor.flush()
    tick = monitor.last(60)
    assert tick.calls["step"].num_ended == 12
    assert tick.gauges["training_loss"] == pytest.approx(run.losses[-1])
    assert tick.calls["step"].latency_s.sum == pytest.approx(run.steps_s, rel=0.5)
    assert 0 < tick.gauges["training_data_share"] < 1
    assert tick.gauges["training_gradient_norm"] > 0


@pytest.mark.parametrize("bad", [{"times": 1}, {"share": 0}, {"window": 5, "warm_up": 10}])
def test_a_norm_is_judged_by_legal_settings(bad):
    with pytest.raises(InputError, match="norm-jump: got"):
        NormJump(**bad)


def test_every_is_one_or_more(monitor):
    with pytest.raises(InputError, match="every: got 0; legal is 1 or more"):
        monitor.training(every=0)
