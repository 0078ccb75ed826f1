"""PYR218: gradients as the largest part of the peak, and updates within the backward pass."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pyrometer as pm
from pyrometer.rules.case import Case

CODE = "PYR218"


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(128, 128) for _ in range(8)])


def test_updating_within_the_backward_pass_keeps_fewer_gradients_and_the_same_weights(findings, profile):
    memory = profile({"gradients": 50, "parameters": 50}, advice={"step-in-backward": 40})
    found = findings(CODE, Case(target="t", memory=memory, limits={f"{CODE}.min_share": 0.4}))
    x, y = torch.randn(4, 128), torch.randn(4, 128)
    at_end, within = model(), model()
    optimizer = torch.optim.SGD(at_end.parameters(), lr=0.1)
    nn.functional.mse_loss(at_end(x), y).backward()
    held = sum(p.grad is not None for p in at_end.parameters())
    optimizer.step()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in within.parameters()}
    alive: list[int] = []

    def update(p: torch.Tensor) -> None:
        alive.append(sum(q.grad is not None for q in within.parameters()))
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in within.parameters():
        p.register_post_accumulate_grad_hook(update)
    nn.functional.mse_loss(within(x), y).backward()
    assert max(alive) <= 2 < held
    assert all(torch.equal(p, q) for p, q in zip(at_end.parameters(), within.parameters(), strict=True))
    assert all(finding.advice.fix_class == "semantic" for finding in found)


def test_it_speaks_where_gradients_are_the_largest_part(findings, profile):
    memory = profile({"gradients": 60, "parameters": 40}, advice={"step-in-backward": 40})
    (finding,) = findings(CODE, Case(target="t", memory=memory))
    assert finding.evidence["dominates"]
    assert finding.advice.gain.saves_bytes == 40 * 2**20


@pytest.mark.parametrize(
    ("ledger", "advice"),
    [
        ({"gradients": 40, "activations": 60}, {"step-in-backward": 30}),
        ({"gradients": 60, "parameters": 40}, {}),
        ({"gradients": 6, "parameters": 4}, {"step-in-backward": 4}),
    ],
)
def test_it_is_silent_where_they_are_not_or_nothing_was_rehearsed(findings, profile, ledger, advice):
    assert findings(CODE, Case(target="t", memory=profile(ledger, advice=advice))) == []


def test_the_workload_that_has_no_gradients_is_silent(findings, recorded):
    memory = recorded(pm.Inference(model(), torch.randn(2, 128)))
    assert findings(CODE, Case(target="t", memory=memory, limits={f"{CODE}.min_peak_bytes": 0})) == []
