from __future__ import annotations

import msgspec
import pytest

from pyrometer.rules.ranking import ranked


def test_the_rank_whose_data_comes_late_is_named_with_its_cause(findings, example_jobs):
    (finding,) = findings("PYR607", example_jobs["late"])
    assert finding.where.rank == 2
    assert "the others wait for rank 2 in 100 % of the steps" in finding.message
    assert "DataLoader" in finding.where.op
    assert "more workers" in finding.advice.text
    assert finding.cost.share > 0.2


def test_seen_from_the_late_rank_its_waiting_for_data_is_the_same_cost(findings, example_jobs):
    case = example_jobs["late"]
    late = msgspec.structs.replace(case, trace=next(rank for rank in case.ranks if rank.rank == 2))
    told = ranked(finding for code in ("PYR607", "PYR301", "PYR101") for finding in findings(code, late))
    assert [(finding.code, finding.where.rank, finding.overlaps) for finding in told] == [
        ("PYR607", 2, []),
        ("PYR301", 2, ["PYR607"]),
        ("PYR101", 2, ["PYR607", "PYR301"]),  # it reads a value, and only then loads the next batch
    ]
    (other,) = findings("PYR607", case)
    assert other.resource == "straggler:2"


def test_the_fixed_job_is_silent_and_as_fast_as_predicted(findings, example_jobs):
    late, fixed = example_jobs["late"], example_jobs["fixed"]
    assert findings("PYR607", fixed) == []
    (finding,) = findings("PYR607", late)
    ratio = fixed.trace.span_ns / late.trace.span_ns
    assert finding.advice.gain.ratio_low == pytest.approx(ratio, abs=0.05)


def test_a_device_that_computes_longer_is_told_as_such(findings, synthetic):
    (finding,) = findings("PYR607", synthetic(slow_us={1: 500}))
    assert finding.where.rank == 1
    assert "on its device" in finding.advice.text


def test_jitter_below_the_limit_is_silent(findings, synthetic):
    assert findings("PYR607", synthetic(slow_us={1: 10})) == []


def test_ranks_in_step_are_silent(findings, synthetic):
    assert findings("PYR607", synthetic()) == []
