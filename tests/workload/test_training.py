from __future__ import annotations

import math
import multiprocessing
import threading
import warnings

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from torch.utils.data import DataLoader, TensorDataset

from pyrometer.errors import InputError
from pyrometer.workload.training import Training


class Rebinding(torch.optim.Optimizer):
    """Puts new tensors into its state instead of changing the old ones, and counts on itself."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.total = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.total += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter]
                    state["mean"] = 0.9 * state.get("mean", 0) + parameter.grad
                    parameter.data = parameter.data - group["lr"] * state["mean"]


OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
    "adamw": torch.optim.AdamW,
    "foreach": lambda p, lr: torch.optim.AdamW(p, lr=lr, foreach=True),
    "fused": lambda p, lr: torch.optim.AdamW(p, lr=lr, fused=True),
    "amsgrad": lambda p, lr: torch.optim.Adam(p, lr=lr, amsgrad=True),
    "tensor lr": lambda p, lr: torch.optim.Adam(p, lr=torch.tensor(lr), capturable=False, foreach=False),
    "rmsprop": lambda p, lr: torch.optim.RMSprop(p, lr=lr, momentum=0.5, centered=True),
    "adagrad": torch.optim.Adagrad,
    "rebinding": Rebinding,
    "two groups": lambda p, lr: torch.optim.SGD(
        [{"params": (p := list(p))[:2], "lr": lr}, {"params": p[2:], "weight_decay": 0.1}], lr=lr / 2
    ),
}
SCHEDULES = {
    "step": lambda o: schedules.StepLR(o, 2),
    "lambda": lambda o: schedules.LambdaLR(o, lambda step: 0.9**step),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 10),
    "one cycle": lambda o: schedules.OneCycleLR(o, max_lr=0.1, total_steps=100),
    "cyclic": lambda o: schedules.CyclicLR(o, 0.01, 0.1, step_size_up=3, cycle_momentum=False),
    "sequential": lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, 0.1, total_iters=2), schedules.ExponentialLR(o, 0.9)], milestones=[2]
    ),
    "chained": lambda o: schedules.ChainedScheduler(
        [schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.9)]
    ),
    "warm restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("trained_before", [False, True])
def test_everything_is_restored_bit_by_bit(name, trained_before, make_training, picture, alike):
    work = make_training(OPTIMIZERS[name])
    if trained_before:
        for x, y in work.batches:
            nn.functional.mse_loss(work.parts.model(x), y).backward()
            work.parts.optimizer.step()  # leaves state, and gradients that nobody has cleared
    work.parts.model.norm.eval()
    before = picture(work)
    with work.open() as session:
        for _ in range(3):
            session.step(session.prepare())
        assert not alike(picture(work), before)
    assert alike(picture(work), before)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_sessions_one_after_the_other_lose_the_same(name, make_training, losses_of):
    work = make_training(OPTIMIZERS[name])
    first = losses_of(work)
    assert losses_of(work) == first
    assert len(set(first)) > 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_second_session_at_the_same_time_trains_a_copy_that_goes_the_same_way(
    name, make_training, picture, alike
):
    work = make_training(OPTIMIZERS[name])
    before = picture(work)
    with work.open() as one, work.open() as two:
        for _ in range(4):
            drawn = torch.get_rng_state()
            lost = one.step(one.prepare())
            torch.set_rng_state(drawn)
            assert torch.equal(two.step(two.prepare()), lost)
        assert one.parts is work.parts
        assert two.parts.model is not work.parts.model
    assert alike(picture(work), before)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_scheduler_drives_the_optimizer_of_its_session(name, copied, make_training, picture, alike):
    work = make_training(scheduler=SCHEDULES[name])
    before = picture(work)
    rates = work.variant(dtype="float64") if copied else work
    with rates.open() as session:
        own = session.parts.optimizer
        assert (own is work.parts.optimizer) is not copied
        assert session.parts.scheduler.optimizer is own
        seen = []
        for _ in range(5):
            session.step(session.prepare())
            seen.append(own.param_groups[0]["lr"])
        assert len(set(seen)) > 1
        if copied:
            assert alike(picture(work), before)
    assert alike(picture(work), before)


def test_a_copied_optimizer_keeps_hooks_and_attributes_of_its_class(make_training):
    class Counting(torch.optim.SGD):
        def __init__(self, params, lr):
            super().__init__(params, lr)
            self.my_state = [0]

        def step(self, closure=None):
            self.my_state[0] += 1
            return super().step(closure)

    work = make_training(Counting, scheduler=SCHEDULES["step"])
    stepped = []
    work.parts.optimizer.register_step_post_hook(lambda optimizer, *_: stepped.append(optimizer))
    with work.variant(dtype="float64").open() as session:
        session.step(session.prepare())
        assert session.parts.optimizer.my_state == [1]
        assert stepped[-1] is session.parts.optimizer
    assert work.parts.optimizer.my_state == [0]


@pytest.mark.parametrize("trained_before", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_another_dtype_trains_a_cast_copy(dtype, trained_before, make_training, picture, alike):
    work = make_training(OPTIMIZERS["foreach"])
    if trained_before:
        for x, y in work.batches:
            nn.functional.mse_loss(work.parts.model(x), y).backward()
            work.parts.optimizer.step()
    before = picture(work)
    with work.variant(dtype=dtype).open() as session:
        session.step(session.prepare())
        wanted = getattr(torch, dtype)
        assert {p.dtype for p in session.parts.model.parameters()} == {wanted}
        assert {s["exp_avg"].dtype for s in session.parts.optimizer.state.values()} == {wanted}
    assert alike(picture(work), before)


def test_float32_state_of_bfloat16_parameters_survives(wide, picture, alike):
    wide.to(torch.bfloat16)
    optimizer = torch.optim.SGD(wide.parameters(), lr=0.1)
    for parameter in wide.parameters():
        optimizer.state[parameter]["master"] = parameter.detach().float() + 1e-4
    batches = [(torch.randn(4, 6, dtype=torch.bfloat16), torch.randn(4, 6, dtype=torch.bfloat16))]
    work = Training(wide, nn.functional.mse_loss, optimizer, batches)
    before = picture(work)
    with work.open() as session, work.open() as two:
        session.step(session.prepare())
        two.step(two.prepare())
        assert {s["master"].dtype for s in two.parts.optimizer.state.values()} == {torch.float32}
    assert alike(picture(work), before)


def test_channels_last_lays_out_weights_and_batches(picture, alike):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
    seen = []
    model[0].register_forward_pre_hook(
        lambda _, args: seen.append(args[0].is_contiguous(memory_format=torch.channels_last))
    )
    batch = (torch.randn(2, 3, 8, 8), torch.randn(2, 144))
    work = Training(model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters()), [batch])
    before = picture(work)
    with work.variant(memory_format=torch.channels_last).open() as session:
        session.step(session.prepare())
        assert session.parts.model[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert seen == [True]
    assert alike(picture(work), before)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["forward", "loss", "batches"])
def test_state_is_restored_when_a_step_fails(error, where, make_training, picture, alike):
    left = [3]

    def countdown(*_):
        left[0] -= 1
        if left[0] < 0:
            raise error("step")

    def loss(output, target):
        if where == "loss":
            countdown()
        return nn.functional.mse_loss(output, target)

    class Failing(list):
        def __iter__(self):
            for item in list.__iter__(self):
                countdown()
                yield item

    work = make_training(
        OPTIMIZERS["momentum"],
        loss=loss,
        batches=Failing(make_training().batches * 3) if where == "batches" else make_training().batches,
        scheduler=SCHEDULES["step"],
    )
    if where == "forward":
        work.parts.model.register_forward_hook(countdown)
    before = picture(work)
    with pytest.raises(error):
        _steps(work, 10)
    assert alike(picture(work), before)
    assert left == [-1]
    with work.open() as session:
        assert session.parts is work.parts  # the failed session gave the user's objects back


def test_gradients_come_back_as_the_same_tensors(make_training, wide):
    first, last = wide.first.weight, wide.last.weight
    first.grad = torch.ones_like(first)
    kept = first.grad
    with make_training().open() as session:
        assert first.grad is None  # what was left over is no part of the first step
        session.step(session.prepare())
    assert first.grad is kept
    assert bool((kept == 1).all())
    assert last.grad is None


def test_float16_with_a_scaler_on_the_cpu(make_training, picture, alike):
    work = make_training(
        OPTIMIZERS["momentum"], amp=torch.float16, scaler=torch.amp.GradScaler("cpu", init_scale=8.0)
    )
    before = picture(work)
    with work.open() as one, work.open() as two:
        for session in (one, two):
            lost = [session.step(session.prepare()).item() for _ in range(3)]
            assert all(math.isfinite(value) for value in lost)
        assert two.parts.scaler is not work.parts.scaler
    assert alike(picture(work), before)
    assert work.parts.scaler._scale is None


def test_accumulation_averages_micro_batches_and_counts_them(wide):
    model = nn.Linear(6, 6)
    batches = [(torch.randn(4, 6), torch.randn(4, 6)) for _ in range(2)]
    whole = [(torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches]))]

    def weight_after_a_step(batches, accumulate):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        work = Training(model, nn.functional.mse_loss, optimizer, batches, accumulate=accumulate)
        with work.open() as session:
            session.step(session.prepare())
            assert session.units_per_step == 8
            return model.weight.detach().clone()

    torch.testing.assert_close(weight_after_a_step(batches, 2), weight_after_a_step(whole, 1))


def test_phases_are_marked_in_order(make_training):
    work = make_training(accumulate=2)
    marks = []
    with work.open() as session:
        session.phased_step(marks.append)
    assert marks == ["data", "h2d", "forward", "backward"] * 2 + ["optimizer"]
    assert list(dict.fromkeys(marks)) == list(work.phases())


@pytest.mark.parametrize("persistent", [False, True])
def test_worker_processes_of_a_loader_end_with_the_session(persistent, make_training):
    data = TensorDataset(torch.randn(8, 6), torch.randn(8, 6))
    loader = DataLoader(data, batch_size=4, num_workers=1, persistent_workers=persistent)
    with make_training(batches=loader).open() as session:
        for _ in range(3):
            session.step(session.prepare())
        assert multiprocessing.active_children()
    assert not multiprocessing.active_children()


def test_two_sessions_over_one_loader_with_persistent_workers_do_not_reset_each_other(wide):
    data = TensorDataset(torch.arange(8.0).reshape(8, 1))
    loader = DataLoader(data, batch_size=2, num_workers=1, persistent_workers=True)
    users = iter(loader)
    assert next(users)[0].flatten().tolist() == [0, 1]
    model = nn.Linear(1, 1)
    work = Training(
        model,
        lambda model, batch: seen.append(batch[0][0].item()) or model(batch[0]).sum(),
        _sgd(model),
        loader,
    )
    seen: list[float] = []
    with work.open() as session, work.open() as two:
        for _ in range(4):
            session.step(session.prepare())
            two.step(two.prepare())
    assert seen == [0, 0, 2, 2, 4, 4, 6, 6]
    assert next(users)[0].flatten().tolist() == [2, 3]
    loader._iterator = None
    del users


def test_a_loader_with_its_own_generator_draws_the_same_again(make_training, losses_of):
    generator = torch.Generator().manual_seed(3)
    data = TensorDataset(torch.randn(32, 6), torch.randn(32, 6))
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=generator)
    work = make_training(batches=loader)
    state = generator.get_state()
    assert losses_of(work, 3) == losses_of(work, 3)
    drawn: list[list[float]] = [[], []]
    seeing = Training(
        model := nn.Linear(6, 6),
        lambda model, batch: turn[0].append(batch[0].sum().item()) or model(batch[0]).sum(),
        _sgd(model),
        loader,
    )
    turn = [drawn[0]]
    with seeing.open() as one, seeing.open() as two:
        for _ in range(10):  # more than an epoch
            for session, turn[0] in ((one, drawn[0]), (two, drawn[1])):
                session.step(session.prepare())
    assert drawn[0] == drawn[1]
    assert torch.equal(generator.get_state(), state)
    users = [x.sum().item() for _ in range(2) for x, _ in loader]
    assert drawn[0] == users[:10]


def test_lazy_parameters_stay_lazy():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    work = Training(model, nn.functional.mse_loss, _sgd(model), [(torch.randn(2, 3), torch.randn(2, 1))])
    with work.open() as session:
        lost = [session.step(session.prepare()).item() for _ in range(3)]
    assert lost[2] < lost[0]
    assert all(torch.nn.parameter.is_lazy(parameter) for parameter in model.parameters())


def test_a_loss_with_parameters_and_buffers_is_restored_too():
    class Centers(nn.Module):
        def __init__(self):
            super().__init__()
            self.centers = nn.Parameter(torch.zeros(2))
            self.register_buffer("count", torch.zeros(()))

        def forward(self, output, target):
            self.count += 1
            return ((output - self.centers) ** 2).mean() + 0 * target.sum()

    model, loss = nn.Linear(3, 2), Centers()
    optimizer = torch.optim.SGD([*model.parameters(), *loss.parameters()], lr=0.5)
    work = Training(model, loss, optimizer, [(torch.randn(4, 3), torch.randn(4))])
    with work.open() as one, work.open() as two:
        for session in (one, two):
            session.step(session.prepare())
            assert session.parts.loss.count == 1
            assert session.parts.loss.centers.abs().sum() > 0
    assert loss.count == 0
    assert loss.centers.abs().sum() == 0


def test_loss_forms(wide):
    x, y = torch.randn(4, 6), torch.randn(4, 6)

    class Holding(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 6)

        def forward(self, x, labels):
            return {"loss": nn.functional.mse_loss(self.inner(x), labels)}

    holding = Holding()
    whole = lambda model, batch: model(*batch)["loss"]  # noqa: E731
    seen = [
        _one_loss(Training(holding, None, _sgd(holding), [{"x": x, "labels": y}])),
        _one_loss(Training(holding, None, _sgd(holding), [[x, y]])),
        _one_loss(Training(holding, whole, _sgd(holding), [(x, y)])),
        _one_loss(Training(holding.inner, nn.MSELoss(), _sgd(holding), [[x, y]])),
        _one_loss(Training(holding.inner, nn.MSELoss(), _sgd(holding), [((x,), y)])),
        _one_loss(Training(holding.inner, nn.MSELoss(), _sgd(holding), [({"input": x}, y)])),
    ]
    assert len(set(seen)) == 1


def test_effective_tokens_of_a_padded_batch():
    model = nn.Embedding(10, 4)
    batch = {
        "ids": torch.zeros(2, 5, dtype=torch.long),
        "mask": torch.tensor([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]),
    }
    work = Training(
        model,
        lambda model, batch: model(batch["ids"]).sum(),
        _sgd(model),
        [batch],
        mask="mask",
        unit="tokens",
    )
    with work.open() as session:
        session.step(session.prepare())
        session.step(session.prepare())
    assert session.units_per_step == 4
    assert session.padding_ratio == 0.6


def test_the_frame_of_the_caller_may_have_gradients_off(make_training):
    with torch.no_grad(), make_training().open() as session:
        session.step(session.prepare())
        assert not torch.is_grad_enabled()


def test_snapshot_bytes_counts_parameters_buffers_and_state(make_training, wide):
    parameters = sum(p.numel() * 4 for p in wide.parameters())
    buffers = sum(b.numel() * b.element_size() for b in wide.buffers())
    work = make_training(torch.optim.Adam)
    assert work.snapshot_bytes() == parameters + buffers
    for x, y in work.batches:
        nn.functional.mse_loss(wide(x), y).backward()
        work.parts.optimizer.step()
    steps = 4 * len(list(wide.parameters()))
    assert work.snapshot_bytes() == parameters + buffers + 2 * parameters + steps


def test_a_model_that_cannot_be_copied_can_be_trained_once_but_not_twice(make_training):
    class Locked(nn.Linear):
        def __init__(self):
            super().__init__(6, 6)
            self.lock = threading.Lock()

    work = make_training(model=Locked())
    with work.open() as session:
        session.step(session.prepare())
        with (
            pytest.raises(
                InputError, match=r"model: cannot be copied \(TypeError.*lock.*own factory"
            ) as caught,
            work.open(),
        ):
            pass
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="cannot be copied"), work.variant(dtype="bfloat16").open():
        pass


def test_a_model_compiled_in_place_is_not_silently_copied_without_its_compilation(make_training):
    model = nn.Sequential(nn.Linear(6, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own, on import
        model[0].compile()
    with (
        pytest.raises(InputError, match=r"compiled in place by \.compile\(\)"),
        make_training(model=model).variant(dtype="bfloat16").open(),
    ):
        pass


def test_a_copy_whose_loss_reaches_the_users_model_is_refused(make_training, wide, picture, alike):
    work = make_training(
        loss=lambda output, target: (output - target).square().mean() + wide.last.weight.square().sum()
    )
    before = picture(work)
    with work.open() as one:
        one.step(one.prepare())
        with (
            work.open() as two,
            pytest.raises(InputError, match=r"loss: uses the model from outside.*loss\(model, batch\)"),
        ):
            two.step(two.prepare())
    assert alike(picture(work), before)


def test_an_optimizer_whose_step_was_replaced_is_not_copied(make_training):
    work = make_training()
    work.parts.optimizer.step = lambda: None
    with pytest.raises(InputError, match="optimizer: its step"), work.variant(dtype="bfloat16").open():
        pass


BAD = {
    "no module": (lambda m: Training(3, None, _sgd(m), []), "model: got int"),
    "no optimizer": (lambda m: Training(m, None, None, []), "optimizer: got NoneType; training needs"),
    "another model's optimizer": (lambda m: Training(m, None, _sgd(nn.Linear(2, 2)), []), "holds none of the model"),
    "closures": (lambda m: Training(m, None, torch.optim.LBFGS(m.parameters()), []), "LBFGS"),
    "plateau": (
        lambda m: Training(m, None, (o := _sgd(m)), [], scheduler=schedules.ReduceLROnPlateau(o)),
        "ReduceLROnPlateau",
    ),
    "loss is a number": (lambda m: Training(m, 0.5, _sgd(m), []), "loss: got float"),
    "batches is a tensor": (lambda m: Training(m, None, _sgd(m), torch.zeros(2)), "batches: got Tensor"),
    "batches is a function": (lambda m: Training(m, None, _sgd(m), list), "batches: got type"),
    "accumulate": (lambda m: Training(m, None, _sgd(m), [], accumulate=0), "accumulate: got 0"),
    "amp": (lambda m: Training(m, None, _sgd(m), [], amp="fp8"), "autocast: got 'fp8'; legal are bfloat16, float16"),
    "batch size": (lambda m: Training(m, None, _sgd(m), []).variant(batch_size=4), "batch_size: not a setting of a Training"),
    "empty": (lambda m: _one_loss(Training(m, None, _sgd(m), [])), "batches: the iterable is empty"),
    "one pass only": (lambda m: _steps(Training(m, _sum, _sgd(m), iter([torch.ones(1, 6)])), 2), "ended after 1"),
    "not a pair": (lambda m: _one_loss(Training(m, nn.MSELoss(), _sgd(m), [torch.ones(1, 6)])), "batch that is a Tensor; loss"),
    "three": (lambda m: _one_loss(Training(m, nn.MSELoss(), _sgd(m), [(1, 2, 3)])), "batch that is a tuple of 3"),
    "no loss in the output": (lambda m: _one_loss(Training(m, None, _sgd(m), [torch.ones(1, 6)])), r"output \(Tensor\) holds no loss"),
    "no such mask": (
        lambda m: _steps(Training(m, _sum, _sgd(m), [torch.ones(1, 6)], mask="mask"), 2),
        "mask: no input 'mask'; there are 1 positional inputs, and by keyword: none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_trainings_are_refused_in_one_line(name):
    make, message = BAD[name]
    with pytest.raises(InputError, match=message) as caught:
        make(nn.Linear(6, 6))
    assert "\n" not in str(caught.value)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def _sum(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return model(batch).sum()


def _steps(work: Training, num: int) -> list[float]:
    with work.open() as session:
        return [session.step(session.prepare()).item() for _ in range(num)]


def _one_loss(work: Training) -> float:
    return _steps(work, 1)[0]
