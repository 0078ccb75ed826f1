"""PYR211: variables that hold what the peak does not need."""

from __future__ import annotations

import torch

import pyrometer as pm
from pyrometer.memory.advice.rules.lingering import lingering
from pyrometer.rules.case import Case

CODE = "PYR211"


def step_that_logs(x: torch.Tensor) -> torch.Tensor:
    wide = x.repeat_interleave(8)
    mean = wide.mean()
    rest = torch.exp(x.repeat_interleave(8)) + mean
    return rest.sum()


def step_that_lets_go(x: torch.Tensor) -> torch.Tensor:
    mean = x.repeat_interleave(8).mean()
    rest = torch.exp(x.repeat_interleave(8)) + mean
    return rest.sum()


def test_a_variable_kept_for_a_figure_is_named_and_letting_it_go_brings_what_was_rehearsed(
    findings, recorded, rehearsed
):
    x = torch.randn(10_000)
    profile = rehearsed(pm.Call(step_that_logs, x), lingering)
    (finding,) = findings(CODE, Case(target="t", memory=profile, limits={f"{CODE}.min_peak_bytes": 0}))
    assert "del wide" in finding.advice.sketch
    assert finding.advice.fix_class == "exact"
    assert finding.where.file == __file__
    after = recorded(pm.Call(step_that_lets_go, x))
    assert profile.peak_bytes - after.peak_bytes == finding.advice.gain.saves_bytes
    assert torch.equal(step_that_logs(x), step_that_lets_go(x))


def test_it_is_silent_without_such_variables_on_small_peaks_and_for_small_savings(profile, findings):
    without = profile({"activations": 80, "unknown": 80})
    small = profile({"activations": 8}, advice={"let-go-earlier": 4})
    hardly = profile({"activations": 80}, advice={"let-go-earlier": 4})
    for memory in (without, small, hardly):
        assert findings(CODE, Case(target="t", memory=memory)) == []
