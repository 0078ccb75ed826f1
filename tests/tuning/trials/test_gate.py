"""What the gate of numerics lets through, by fix class."""

from __future__ import annotations

import pytest

from pyrometer.tuning.trials.gate import CaseError, Limits, coarsest, judge

CLOSE = CaseError(label="as given", max_abs=1e-6, max_rel=1e-6, cosine=1.0)
ROUNDED = CaseError(label="as given", max_abs=1e-2, max_rel=1e-2, cosine=0.9999)
QUANTISED = CaseError(label="as given", max_abs=0.1, max_rel=0.1, cosine=0.99)
TURNED = CaseError(label="as given", max_abs=0.1, max_rel=0.01, cosine=0.5)


@pytest.mark.parametrize(
    ("case", "fix_class", "passes"),
    [
        (CLOSE, "exact", True),
        (ROUNDED, "exact", False),
        (ROUNDED, "tolerance", True),
        (QUANTISED, "tolerance", False),
        (QUANTISED, "semantic", True),
        (TURNED, "tolerance", False),
        (TURNED, "semantic", False),
    ],
)
def test_a_class_lets_through_what_it_may_change(case, fix_class, passes):
    assert judge([CLOSE, case], fix_class, Limits()).passes is passes


def test_one_case_of_many_is_enough_to_refuse_and_is_named():
    found = judge(
        [CLOSE, CaseError(label="zeros", mismatch="NaN where the reference is 0")], "semantic", Limits()
    )
    assert found.refused == "zeros: NaN where the reference is 0"


def test_a_nan_in_the_error_itself_is_no_pass():
    assert not judge(
        [CaseError(label="as given", max_rel=float("nan"), cosine=1.0)], "tolerance", Limits()
    ).passes


def test_whether_other_classes_may_be_chosen_is_for_the_users_metric_to_say():
    other = CaseError(label="as given", max_rel=1e-5, cosine=1.0, different="3 of 8 whole numbers differ")
    told = "as given: 3 of 8 whole numbers differ; --metric would say whether that matters"
    assert judge([other], "tolerance", Limits()).refused == told
    assert judge([other], "tolerance", Limits(), metrics=(0.9, 0.9)).passes
    assert not judge([other], "tolerance", Limits(), metrics=(0.9, 0.8)).passes


def test_what_was_skipped_does_not_count():
    skipped = CaseError(label="3 samples", max_rel=1.0, skipped="the model itself raised ValueError")
    found = judge([CLOSE, skipped], "exact", Limits())
    assert found.passes
    assert found.max_rel == 1e-6


def test_the_users_metric_decides_in_place_of_errors_of_the_class_semantic():
    far = CaseError(label="as given", max_abs=9.0, max_rel=0.9, cosine=0.1)
    assert judge([far], "semantic", Limits(), metrics=(0.90, 0.895)).passes
    refused = judge([CLOSE], "semantic", Limits(), metrics=(0.90, 0.80)).refused
    assert refused == "the metric fell from 0.9 to 0.8, where 0.891 is the least"


def test_the_users_metric_can_refuse_what_errors_would_let_through():
    assert not judge([CLOSE], "exact", Limits(), metrics=(0.90, 0.80)).passes


def test_a_metric_below_zero_may_fall_by_its_share_too():
    assert judge([CLOSE], "semantic", Limits(), metrics=(-2.0, -2.01)).passes
    assert not judge([CLOSE], "semantic", Limits(), metrics=(-2.0, -2.1)).passes


def test_the_class_of_a_configuration_is_its_coarsest():
    assert coarsest(["tolerance", "exact"]) == "tolerance"
