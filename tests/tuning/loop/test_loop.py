"""What the loop computes is what a loop written by hand computes; what it does around that leaves no trace."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset
from training_program import digest, loop_of

import pyrometer as pm
from pyrometer.errors import InputError


def net():
    torch.default_generator.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.Tanh(), nn.Linear(16, 3))


def samples(number=20):
    numbers = torch.Generator().manual_seed(1)
    return TensorDataset(
        torch.randn(number, 6, generator=numbers), torch.randint(3, (number,), generator=numbers)
    )


def training(batches=None, model=None, **settings):
    model = model or net()
    optimizer = settings.pop("optimizer", None) or torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    batches = batches if batches is not None else DataLoader(samples(), 4, shuffle=True)
    return pm.Training(model, nn.CrossEntropyLoss(), optimizer, batches, **settings)


def weights(work):
    return [parameter.detach().clone() for parameter in work.parts.model.parameters()]


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_it_trains_as_a_loop_by_hand_does_to_the_bit():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    losses = []
    torch.default_generator.manual_seed(7)
    for _ in range(3):
        for x, y in DataLoader(samples(), 4, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            losses.append(float(loss.detach()))
    own = net()
    settings = {"optimizer": torch.optim.SGD(own.parameters(), 0.1, momentum=0.9), "clip_norm": 0.5}
    settings["scheduler"] = torch.optim.lr_scheduler.StepLR(settings["optimizer"], 3, 0.5)
    work = training(model=own, **settings)
    torch.default_generator.manual_seed(7)
    run = pm.TrainingLoop(work).run(epochs=3)
    assert run.losses == losses
    assert same(list(model.parameters()), weights(work))
    assert (run.step, run.epoch, run.ended) == (15, 3, "reached the end of epoch 3")


def test_the_last_accumulation_of_an_epoch_is_the_mean_of_the_batches_that_there_are():
    x, y = samples(20).tensors
    whole = [(x[:12], y[:12]), (x[12:], y[12:])]
    parts = list(zip(x.split(4), y.split(4), strict=True))  # five: three and two
    expected, work = (
        training(b, nn.Sequential(nn.Linear(6, 3)), accumulate=n) for b, n in ((whole, 1), (parts, 3))
    )
    work.parts.model.load_state_dict(expected.parts.model.state_dict())
    pm.TrainingLoop(expected).run(epochs=2)
    run = pm.TrainingLoop(work).run(epochs=2)
    assert run.step == 4
    for one, other in zip(weights(expected), weights(work), strict=True):
        torch.testing.assert_close(one, other)


class Stream:
    """Batches without a length."""

    def __iter__(self):
        x, y = samples(20).tensors
        return zip(x.split(4), y.split(4), strict=True)


class Parallel(nn.Module):
    """A model of which every backward pass averages over ranks, unless it is told not to."""

    def __init__(self):
        super().__init__()
        self.net = net()
        self.synced, self._wanted = [], True

    def forward(self, x):
        self.synced.append(self._wanted)
        return self.net(x)

    def no_sync(self):
        outer = self

        class Context:
            def __enter__(self):
                outer._wanted = False

            def __exit__(self, *_):
                outer._wanted = True

        return Context()


class Sharded(Parallel):
    no_sync = None

    def set_requires_gradient_sync(self, wanted):
        self._wanted = wanted


class Lying(Stream):
    """A loader with fewer batches than its length says."""

    def __len__(self):
        return 7


@pytest.mark.parametrize("batches", [None, Stream(), Lying()], ids=["length", "no length", "wrong length"])
def test_an_epoch_ends_once_also_within_an_accumulation(batches):
    evaluated = []
    loop = pm.TrainingLoop(training(batches, accumulate=3), evaluate=lambda _: evaluated.append(1) or {})
    run = loop.run(epochs=3)
    assert (run.step, run.epoch, len(evaluated)) == (6, 3, 3)


@pytest.mark.parametrize("kind", [Parallel, Sharded])
@pytest.mark.parametrize("batches", [None, Stream()], ids=["length", "no length"])
def test_gradients_are_averaged_once_per_step(kind, batches):
    model = kind()
    pm.TrainingLoop(training(batches, model, accumulate=3)).run(epochs=2)
    assert model.synced == [False, False, True, False, True] * 2


def test_the_scheduler_does_not_step_where_the_scaler_skipped():
    for optimizer_of in (torch.optim.SGD, lambda p, lr: torch.optim.AdamW(p, lr, fused=True)):
        model = net()
        optimizer = optimizer_of(model.parameters(), 1.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
        loop = pm.TrainingLoop(
            training(model=model, optimizer=optimizer, scheduler=scheduler, scaler=scaler, amp="float16")
        )
        run = loop.run(30)
        assert 0 < run.num_overflows < 30
        assert scheduler.last_epoch == 30 - run.num_overflows


class Reads(TorchDispatchMode):
    number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.number += "_local_scalar_dense" in str(func)
        return func(*args, **(kwargs or {}))


def test_no_step_waits_for_its_loss():
    loop = pm.TrainingLoop(training(list(DataLoader(samples(), 4))), log_every=10)
    with Reads() as reads:
        run = loop.run(40)
    assert reads.number == 0
    assert [len(point.losses) for point in run.log] == [10] * 4


def test_phases_add_up_and_the_record_travels():
    run = pm.TrainingLoop(training()).run(20)
    shares = {phase.name: phase.share for phase in run.phases}
    assert set(shares) >= {"data", "forward", "backward", "optimizer"}
    assert sum(shares.values()) == pytest.approx(1)
    assert run.units_per_s == pytest.approx(4 * 20 / run.steps_s)
    from pyrometer.record import from_json

    assert from_json(pm.tuning.loop.record.TrainingRun, run.to_json()) == run
    assert str(run).startswith("20 steps in ")
    assert len(str(run).splitlines()) <= 3


class Recorder:
    def __init__(self):
        self.events = []

    def on_step(self, end):
        self.events.append(("step", end.step))
        assert isinstance(end.loss, float)

    def on_checkpoint(self, note):
        self.events.append(("checkpoint", note.step))

    def on_end(self, run):
        self.events.append(("end", run.step))


def test_callbacks_hear_of_everything_in_its_order(tmp_path):
    recorder = Recorder()
    pm.TrainingLoop(training(), checkpoints=tmp_path, checkpoint_every=2, callbacks=[recorder]).run(3)
    assert recorder.events == [
        ("step", 1), ("step", 2), ("checkpoint", 2), ("step", 3), ("checkpoint", 3), ("end", 3)
    ]  # fmt: skip


@pytest.mark.parametrize("event", ["on_step", "on_log", "on_checkpoint", "on_end", "evaluate", "stop_when"])
def test_what_a_users_function_raises_is_raised_with_the_state_saved(event, tmp_path):
    def fail(_):
        raise ZeroDivisionError("mine")

    options = {"log_every": 3, "checkpoint_every": 3, "evaluate_every": 3}
    if event.startswith("on_"):
        options["callbacks"] = [type("Mine", (), {event: staticmethod(fail)})()]
    else:
        options[event] = fail
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        loop_of("dropout", tmp_path, **options).run(6)
    saved = {"on_step": 1, "on_end": 6}.get(event, 3)
    assert f"{event}; the state is saved at step {saved}" in caught.value.__notes__[0]
    rest = loop_of("dropout", tmp_path).run(8)
    assert rest.first_step == saved
    assert rest.losses == loop_of("dropout", None).run(8).losses[saved:]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_step_saves_and_returns(number, tmp_path):
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]

    class Sending:
        def on_step(self, end):
            if end.step == 4:
                os.kill(os.getpid(), number)

    run = loop_of("dropout", tmp_path, callbacks=[Sending()]).run(20)
    assert (run.step, run.ended) == (4, f"received {number.name}")
    assert [note.step for note in run.checkpoints] == [4]
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == handlers
    whole = loop_of("dropout", None)
    whole.run(20)
    rest = loop_of("dropout", tmp_path)
    rest.run(20)
    assert digest(rest) == digest(whole)


def test_a_second_ctrl_c_interrupts_at_once():
    class Sending:
        def on_step(self, end):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pm.TrainingLoop(training(), callbacks=[Sending()]).run(20)
    assert signal.getsignal(signal.SIGINT) is before


def test_it_trains_on_another_thread_too():
    runs = []
    thread = threading.Thread(target=lambda: runs.append(pm.TrainingLoop(training()).run(3)))
    thread.start()
    thread.join()
    assert runs[0].step == 3


def test_evaluation_draws_no_number_of_the_training_and_modes_come_back():
    model = net()
    model[1].eval()

    def evaluate(given):
        assert not given.training
        assert not torch.is_grad_enabled()
        return {"drawn": torch.rand(()) + random.random()}

    work, plain = training(model=model), training()
    plain.parts.model[1].eval()
    modes = [part.training for part in model.modules()]
    runs = []
    for loop in (pm.TrainingLoop(plain), pm.TrainingLoop(work, evaluate=evaluate)):
        torch.default_generator.manual_seed(3)
        runs.append(loop.run(epochs=2))
    assert runs[0].losses == runs[1].losses
    assert len([point for point in runs[1].log if "drawn" in point.metrics]) == 2
    assert [part.training for part in model.modules()] == modes


def test_it_stops_when_it_is_told_to():
    run = pm.TrainingLoop(training(), log_every=2, stop_when=lambda point: point.step >= 6).run(100)
    assert (run.step, run.ended) == (6, "stop_when said so")


def test_the_same_step_is_a_workload():
    loop = pm.TrainingLoop(training(amp="float16", clip_norm=1.0))
    loop.run(2)
    before = weights(loop.work)
    work = loop.workload()
    assert work.parts.scaler is not None
    with work.open() as session:
        session.step()
    assert same(before, weights(loop.work))


def test_a_failing_step_raises_what_it_raised_and_the_loop_can_go_on():
    model, fail = net(), []

    def hook(*_):
        if fail:
            fail.pop()
            raise ZeroDivisionError("sample")

    model.register_forward_hook(hook)
    loop = pm.TrainingLoop(training(model=model, accumulate=2))
    loop.run(1)
    fail.append(1)
    with pytest.raises(ZeroDivisionError, match="sample"):
        loop.run(5)
    assert loop.run(5).step == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log_every": 0}, "log_every: got 0; legal are whole numbers from 1 on"),
        ({"checkpoint_every": 0}, "checkpoint_every: got 0"),
        ({"evaluate_every": 0}, "evaluate_every: got 0"),
        ({"adjust": ["speed"]}, r"adjust: got \['speed'\]; legal are collections of memory, loader"),
        ({"adjust": "memory"}, "adjust: got 'memory'; legal are collections of memory, loader"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        pm.TrainingLoop(training(), **options)


def test_what_cannot_be_trained_in_place_is_refused():
    with pytest.raises(InputError, match=r"work: got Inference; a loop trains a pm.Training"):
        pm.TrainingLoop(pm.Inference(net(), torch.zeros(1, 6)))
    with pytest.raises(InputError, match="is a variant with bfloat16, which only a copy of the model has"):
        pm.TrainingLoop(training().variant(dtype="bfloat16"))
    with pytest.raises(InputError, match=r"run: got neither steps nor epochs; give run\(steps=…\)"):
        pm.TrainingLoop(training()).run()
    with pytest.raises(InputError, match="batches: none in epoch 1"):
        pm.TrainingLoop(training([])).run(1)
    with pytest.raises(InputError, match="clip_norm: got 0"):
        training(clip_norm=0)
