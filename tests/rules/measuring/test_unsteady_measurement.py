"""PYR010: measurements that limit what can be said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pyrometer.bench.quality import CaveatCode, caveat
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

NOT_STEADY = caveat(
    CaveatCode.NOT_STEADY, "no steady state within 30 steps", "run with a larger budget", 60.0
)
BUSY = caveat(CaveatCode.COMPETING_LOAD, "other processes kept 1.5 of 2 CPUs busy", "stop them")
TAIL = caveat(CaveatCode.TAIL_UNBOUNDED, "P99 has no upper bound yet", "measure longer")


def test_a_sound_measurement_is_left_alone(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    assert findings("PYR010", Case(target="a", measurement=measured())) == []


def test_harmless_reservations_are_left_alone(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    assert findings("PYR010", Case(target="a", measurement=measured(warnings=[TAIL]))) == []


def test_one_finding_tells_all_reservations_the_gravest_first(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    measurement = measured(steady=False, warnings=[BUSY, TAIL, NOT_STEADY])
    (finding,) = findings("PYR010", Case(target="a", measurement=measurement))
    assert finding.severity == "warning"
    assert finding.message.startswith("no steady state within 30 steps (1 more caveat); ")
    assert finding.links == ["/measurement/warnings/2", "/measurement/warnings/0"]
    assert (
        finding.advice.text == "Run with a larger budget; other processes kept 1.5 of 2 CPUs busy: stop them."
    )


def test_of_several_budgets_the_largest_is_asked_for_once(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    short = caveat(
        CaveatCode.NOT_STEADY, "no steady state", "run `pyrometer check net5.py:work --budget 19s`", 19.0
    )
    shorter = caveat(
        CaveatCode.FEW_SAMPLES, "2 steady samples", "run `pyrometer check net5.py:work --budget 71s`", 71.0
    )
    measurement = measured(steady=False, num_samples=2, warnings=[short, shorter])
    (finding,) = findings("PYR010", Case(target="a", measurement=measurement))
    assert finding.advice.text == "Run `pyrometer check net5.py:work --budget 71s`."


def test_how_well_the_median_is_known_is_said_once(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    wide = caveat(CaveatCode.WIDE_INTERVAL, "the median is known to ±20 % only", "measure longer", 60.0)
    measurement = measured(ci_low_s=0.008, ci_high_s=0.012, warnings=[wide])
    (finding,) = findings("PYR010", Case(target="a", measurement=measurement))
    assert finding.message == "the median is known to ±20 % only; smaller gains are within noise"


def first_call_only(measured: Callable[..., Any]) -> Any:
    told = caveat(CaveatCode.FIRST_CALL_ONLY, "one step took 1 min 8 s", "pass budget_s=682", 682.0)
    return measured(
        num_samples=1, steady=False, median_s=68.2, first_call_s=68.2, ci_low_s=68.2, ci_high_s=68.2,
        warnings=[told],
    )  # fmt: skip


def test_a_single_step_claims_no_precision(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    (finding,) = findings("PYR010", Case(target="a", measurement=first_call_only(measured)))
    assert "±" not in finding.message
    assert finding.evidence["half_width"] is None
    assert finding.advice.text == "Pass budget_s=682."


def test_a_busy_machine_alone_is_worth_knowing(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    (finding,) = findings("PYR010", Case(target="a", measurement=measured(warnings=[BUSY])))
    assert finding.severity == "info"


def test_a_wide_interval_is_told_without_a_reservation(
    findings: Callable[..., list[Finding]], measured: Callable[..., Any]
) -> None:
    measurement = measured(ci_low_s=0.008, ci_high_s=0.012)
    (finding,) = findings("PYR010", Case(target="a", measurement=measurement))
    assert "known to ±20 %" in finding.message
    own = Case(target="a", measurement=measurement, limits={"PYR010.max_half_width": 0.3})
    assert findings("PYR010", own) == []


def test_a_program_that_is_stopped_after_one_step_is_told_and_a_longer_run_mends_it(
    findings: Callable[..., list[Finding]],
) -> None:
    import pyrometer as pm

    work = pm.Inference(torch.nn.Linear(64, 64), (torch.randn(8, 64),))
    short = pm.measure(work, budget_s=1e-6)
    (finding,) = findings("PYR010", Case(target="a", measurement=short))
    assert finding.severity == "warning"
    longer = pm.measure(work, budget_s=0.5)
    doubts = {warning.code for warning in longer.warnings}
    assert longer.num_samples > short.num_samples
    assert CaveatCode.FIRST_CALL_ONLY.value not in doubts
