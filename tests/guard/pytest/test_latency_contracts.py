"""When a measured time keeps a limit, breaks it, or says nothing."""

from __future__ import annotations

import functools
import time

import pytest
import torch
from msgspec.structs import replace
from torch import nn

import pyrometer as pm
from pyrometer.bench.quality import CaveatCode, caveat
from pyrometer.bench.summary import Observation, summarise
from pyrometer.errors import ContractError, InputError, UserProgramError
from pyrometer.guard.pytest.contracts.latency import judge_latency


@pytest.fixture
def measured():
    """Two thousand steps of 8 to 12 ms; three in a hundred take 30 ms."""
    times = [0.008 + 0.004 * (number * 37 % 100) / 100 for number in range(2000)]
    times[5::33] = [0.030] * len(times[5::33])
    return summarise(Observation(name="net", first_call_s=0.01, times_s=times), 0.995)


def with_caveats(measured, *codes):
    return replace(measured, warnings=[caveat(code, f"seen: {code.value}", "look") for code in codes])


@pytest.mark.parametrize(
    ("limit_s", "outcome"), [(0.015, "kept"), (0.01004, "undecided"), (0.009, "broken"), (0.001, "broken")]
)
def test_the_interval_decides(measured, limit_s, outcome):
    assert judge_latency(measured, limit_s, 0.5).outcome == outcome


def test_a_tail_has_a_limit_of_its_own(measured):
    assert judge_latency(measured, 0.015, 0.9).outcome == "kept"
    assert judge_latency(measured, 0.015, 0.99).outcome == "broken"


def test_a_tail_that_so_few_samples_do_not_bound_is_undecided(measured):
    open_ended = [replace(one, high_s=None) for one in measured.quantiles]
    few = replace(measured, num_samples=100, quantiles=open_ended)
    assert judge_latency(few, 1.0, 0.99).outcome == "undecided"


def test_steps_that_are_all_on_one_side_decide_also_without_an_interval(measured):
    open_ended = [replace(one, low_s=None, high_s=None) for one in measured.quantiles]
    few = replace(measured, num_samples=30, quantiles=open_ended)
    assert judge_latency(few, 0.031, 0.5).outcome == "kept"
    assert judge_latency(few, 0.029, 0.5).outcome == "undecided"
    assert judge_latency(few, 0.007, 0.5).outcome == "broken"
    assert judge_latency(few, 0.031, 0.99).outcome == "undecided", "thirty steps do not show one in a hundred"
    assert judge_latency(replace(few, num_samples=7), 0.031, 0.5).outcome == "undecided"


def test_a_tail_of_steps_that_are_timed_together_is_undecided(measured):
    together = replace(measured, steps_per_sample=20)
    assert judge_latency(together, 1.0, 0.5).outcome == "kept"
    assert judge_latency(together, 1.0, 0.95).outcome == "undecided"


def test_a_busy_machine_is_not_the_programs_fault(measured):
    busy = with_caveats(measured, CaveatCode.COMPETING_LOAD)
    assert judge_latency(busy, 0.009, 0.5).outcome == "undecided"
    assert judge_latency(busy, 0.015, 0.5).outcome == "kept"
    assert judge_latency(busy, 0.007, 0.5).outcome == "broken", "even the fastest step is over it"


def test_a_step_that_gives_nan_keeps_no_limit(measured):
    nan = with_caveats(measured, CaveatCode.NAN_OUTPUT)
    assert judge_latency(nan, 1.0, 0.5).outcome == "undecided"
    assert judge_latency(nan, 0.001, 0.5).outcome == "broken"


@pytest.mark.parametrize(
    "code", [CaveatCode.RETURNS_UNFINISHED, CaveatCode.WORK_PUT_OFF, CaveatCode.ANSWERS_KEPT]
)
def test_the_time_of_something_else_is_refused(measured, code):
    assert judge_latency(with_caveats(measured, code), 1.0, 0.5).outcome == "refused"


def test_a_first_call_alone_says_nothing(measured):
    assert judge_latency(replace(measured, complete=False), 1.0, 0.5).outcome == "undecided"


def test_words_carry_the_interval_and_the_number_of_samples(measured):
    text = judge_latency(measured, 0.009, 0.5).text
    assert "promised  the median of a step takes at most 9.00 ms" in text
    assert "ms at 99.5 % confidence, 2,000 samples)" in text


def test_steps_are_measured(contract):
    work = pm.Inference(nn.Linear(64, 64), torch.randn(8, 64))
    assert contract.limit_latency(work, "10s").outcome == "kept"
    assert contract.measurements[-1].median_s < 10
    with pytest.raises(ContractError, match="limit_latency broken: slow"):
        contract.limit_latency(pm.Call(time.sleep, 0.02, name="slow"), 0.001, budget="0.5s")


def test_answers_that_are_kept_keep_no_contract(contract):
    @functools.cache
    def scores():
        return torch.randn(300, 300).matmul(torch.randn(300, 300))

    net = functools.cache(nn.Linear(256, 4096).forward)
    with pytest.raises(ContractError, match=r"refused(.|\n)*its answer is kept"):
        contract.limit_latency(scores, "1s", budget="0.3s")
    with pytest.raises(ContractError, match=r"refused(.|\n)*answer"):
        contract.limit_latency(pm.Call(net, torch.randn(512, 256)), "1s", budget="0.3s")


def test_a_program_that_gives_nan_is_undecided(contract):
    model = nn.Linear(4, 4)
    nn.init.constant_(model.bias, torch.nan)
    with pytest.raises(ContractError, match=r"undecided(.|\n)*NaN"):
        contract.limit_latency(pm.Inference(model, torch.ones(2, 4)), "10s", budget="0.3s")


def test_a_measurement_or_comparison_of_nothing_is_an_error(contract):
    async def answer():
        return torch.ones(2)

    with pytest.raises(InputError, match="coroutine"):
        contract.measure(answer, budget_s=0.2)
    with pytest.raises(InputError, match="coroutine"):
        contract.compare(answer, answer)
    assert not contract.measurements
    assert not contract.verdicts


def test_a_later_step_that_raises_fails_the_measurement(contract):
    calls = []

    def step():
        calls.append(torch.ones(2) + 1)
        if len(calls) > 20:
            raise ValueError("sample 20 is broken")

    with pytest.raises(UserProgramError, match="sample 20 is broken"):
        contract.measure(step, budget_s=5)


def test_ctrl_c_ends_the_test_too(contract):
    calls = []

    def step():
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return torch.ones(2) + 1

    with pytest.raises(KeyboardInterrupt):
        contract.limit_latency(step, "1s")
    assert not contract.contracts


@pytest.mark.parametrize(
    ("limit", "options", "named"),
    [
        ("10", {}, "duration"),
        (0, {}, "positive"),
        (True, {}, "True"),
        ("1s", {"quantile": 0.7}, "0.7"),
        ("1s", {"budget": 0}, "positive"),
    ],
)
def test_illegal_limits_are_one_line(contract, limit, options, named):
    with pytest.raises(InputError, match=named) as caught:
        contract.limit_latency(lambda: torch.ones(2) + 1, limit, **options)
    assert "\n" not in str(caught.value)
