"""Rules about gradients, optimizers and what is recorded for nothing. Each is applied, and keeps its word."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from torch import nn

from pyrometer.memory.advice.rules.gradients import kept_gradients, step_in_backward
from pyrometer.memory.advice.rules.optimizers import eight_bits, implementation, less_state
from pyrometer.memory.advice.rules.recording import frozen_trunk, no_grad, stale_state, untrained_parameters
from pyrometer.workload.call import Call
from pyrometer.workload.training import Training


def rebuilt(work, advice):
    """The training with the optimizer that an advice writes."""
    model = work.parts.model
    names = {"model": model, "torch": torch}
    exec(advice.sketch, names)
    return Training(model, work.parts.loss, names["optimizer"], work.batches)


def trained(work, steps=3):
    """Parameters after some steps."""
    with work.open() as session:
        for _ in range(steps):
            session.prepare()
            session.step()
        return torch.cat([parameter.detach().flatten() for parameter in session.model.parameters()])


def test_another_implementation_lowers_a_peak_in_the_optimizer(wide, keeps_its_word):
    before = wide(foreach=True)
    advice = keeps_its_word(
        implementation, before, lambda advice: rebuilt(wide(), advice), "optimizer-implementation", 0.02
    )
    assert torch.allclose(trained(before), trained(rebuilt(wide(), advice)), rtol=1e-4, atol=1e-6)


def test_a_fused_optimizer_has_no_better_implementation(wide, advice_of):
    assert advice_of(implementation, wide(fused=True)) == []


def test_the_implementation_is_no_matter_where_the_peak_is_elsewhere(deep, advice_of):
    assert advice_of(implementation, deep()) == []


@pytest.mark.parametrize("slug", ["optimizer-sgd", "optimizer-adafactor"])
def test_optimizers_with_less_state_save_it(slug, wide, keeps_its_word):
    keeps_its_word(less_state, wide(), lambda advice: rebuilt(wide(), advice), slug, 0.02)


def test_without_state_there_is_no_less(wide, advice_of):
    assert advice_of(less_state, wide(torch.optim.SGD)) == []


class Quantised(torch.optim.Optimizer):
    """Two moments of a byte per element, with a scale per 256, and no temporaries."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                exact = parameter.numel() < 4096
                for name in ("first", "second"):
                    state[name] = torch.zeros(
                        parameter.numel(), dtype=torch.float32 if exact else torch.uint8
                    )
                    if not exact:
                        state[f"{name} scale"] = torch.zeros(parameter.numel() // 256)
            parameter.add_(parameter.grad, alpha=-1e-3)


def installed(monkeypatch, library):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: True if name == library else found(name, *rest)
    )


def test_eight_bits_quarter_the_state(monkeypatch, wide, keeps_its_word):
    installed(monkeypatch, "bitsandbytes")
    before, after = wide(fused=True), wide()
    after = Training(
        after.parts.model, after.parts.loss, Quantised(after.parts.model.parameters()), after.batches
    )
    advice = keeps_its_word(eight_bits, before, after, "optimizer-8bit", 0.02)
    assert "bnb.optim.AdamW8bit(model.parameters(), lr=0.001)" in advice.sketch


def test_eight_bits_need_a_library(monkeypatch, wide, advice_of):
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert advice_of(eight_bits, wide()) == []


class Idle(torch.optim.Optimizer):
    """What a training is given when hooks do all the work."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self):
        """Nothing."""


def stepping(work, advice):
    model = work.parts.model
    exec(advice.sketch, {"model": model, "torch": torch})
    return Training(model, work.parts.loss, Idle(model.parameters()), work.batches)


def test_stepping_in_the_backward_pass_saves_gradients(wide, keeps_its_word, advice_of):
    keeps_its_word(
        step_in_backward, wide(), lambda advice: stepping(wide(), advice), "step-in-backward", 0.05
    )
    [advice] = advice_of(step_in_backward, wide(torch.optim.SGD))
    plain, hooked = wide(torch.optim.SGD), stepping(wide(torch.optim.SGD), advice)
    assert torch.equal(trained(plain), trained(hooked))


def test_accumulated_gradients_must_stay(wide, advice_of):
    work = wide()
    work.accumulate = 2
    assert advice_of(step_in_backward, work) == []


def step_of(work, *, set_to_none):
    """A training step as a function."""
    model, optimizer = work.parts.model, work.parts.optimizer
    x, y = work.batches[0]

    def step():
        optimizer.zero_grad(set_to_none=set_to_none)
        work.parts.loss(model(x), y).backward()
        optimizer.step()

    return Call(step)


def test_gradients_of_one_step_need_not_wait_for_the_next(deep, keeps_its_word, tensor_peak):
    def work(set_to_none):
        training = deep()
        wide_head = nn.Linear(32, 16_000)
        training.parts = training.parts._replace(
            model=nn.Sequential(training.parts.model.blocks[0], wide_head),
            optimizer=torch.optim.SGD(wide_head.parameters(), lr=0.1),
        )
        x, y = training.batches[0]
        training.batches = [(x[:, :8], y[:, :8])]
        call = step_of(training, set_to_none=set_to_none)
        call.function()  # gradients are there when the recording begins, as in the middle of a run
        return call

    keeps_its_word(kept_gradients, work(False), work(True), "zero-grad-to-none", 0.15, measured=tensor_peak)


def test_gradients_that_are_let_go_are_no_matter(deep, advice_of):
    assert advice_of(kept_gradients, step_of(deep(), set_to_none=True)) == []


def with_trunk(*, frozen=False, wants=False):
    torch.manual_seed(0)
    trunk = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)])
    model = nn.Sequential(trunk, nn.Linear(64, 4))
    trunk.requires_grad_(not frozen)
    batch = torch.randn(64, 64, requires_grad=wants), torch.randint(4, (64,))
    return Training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model[1].parameters(), lr=0.1), [batch])


def head_gradient(work):
    with work.open() as session:
        found = []
        handle = session.parts.optimizer.register_step_pre_hook(
            lambda *_: found.append(session.model[1].weight.grad.clone())
        )
        session.step(session.prepare())
        handle.remove()
        return found[0]


def test_parameters_that_no_optimizer_has_need_no_gradients(keeps_its_word):
    before, after = with_trunk(), with_trunk()

    def applied(advice):
        exec(advice.sketch, {"model": after.parts.model, "optimizer": after.parts.optimizer})
        return after

    advice = keeps_its_word(untrained_parameters, before, applied, "freeze-untrained", 0.02)
    assert "8 parameters" in advice.why
    assert all(parameter.requires_grad for parameter in before.parts.model.parameters())
    assert torch.equal(head_gradient(before), head_gradient(after))


def test_parameters_that_are_trained_are_left_alone(wide, advice_of):
    assert advice_of(untrained_parameters, wide()) == []


def test_a_frozen_trunk_is_recorded_for_a_batch_that_wants_gradients(keeps_its_word, peak):
    before, after = with_trunk(frozen=True, wants=True), with_trunk(frozen=True)

    def afresh(work):
        work.batches[0][0].grad = None  # of the steps that were profiled
        return peak(work)

    advice = keeps_its_word(frozen_trunk, before, after, "no-grad-trunk", 0.02, measured=afresh)
    assert "8 frozen parameters" in advice.why
    assert torch.equal(head_gradient(before), head_gradient(after))


def test_a_frozen_trunk_alone_is_not_recorded(advice_of):
    assert advice_of(frozen_trunk, with_trunk(frozen=True)) == []


def frozen_later(wide):
    work = wide()
    model, optimizer = work.parts.model, work.parts.optimizer
    model(work.batches[0][0]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    for layer in model[:4]:
        layer.requires_grad_(requires_grad=False)
    return work


def test_state_of_frozen_parameters_can_go(wide, keeps_its_word):
    def after(advice):
        work = frozen_later(wide)
        exec(advice.sketch, {"optimizer": work.parts.optimizer})
        return work

    keeps_its_word(stale_state, frozen_later(wide), after, "stale-optimizer-state", 0.02)


def test_state_of_what_trains_stays(wide, advice_of):
    assert advice_of(stale_state, wide()) == []


def evaluation(grad):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(6)])
    x = torch.randn(128, 32)

    def evaluate():
        return model(x).mean()

    return Call(evaluate if grad else torch.no_grad()(evaluate))


def test_an_evaluation_needs_no_graph(keeps_its_word):
    advice = keeps_its_word(no_grad, evaluation(grad=True), evaluation(grad=False), "no-grad", 0.02)
    assert advice.gain.measured
    with torch.no_grad():
        assert torch.equal(evaluation(grad=True).function(), evaluation(grad=False).function())


def test_a_step_with_a_backward_pass_needs_its_graph(deep, advice_of):
    assert advice_of(no_grad, step_of(deep(), set_to_none=True)) == []
    assert advice_of(no_grad, evaluation(grad=False)) == []
