"""Predictions follow what earlier searches on a machine measured."""

from __future__ import annotations

import math

import pytest

from pyrometer.tuning.predictions import PredictedLever
from pyrometer.tuning.search.earlier import corrected, corrections_of
from pyrometer.tuning.search.ordering import Prediction

PRIORS = {"openvino": Prediction(0.6, 0.9), "compile": Prediction(0.5, 0.8)}


def searched(target, measured, **more):
    usual = {"run_id": target, "lever": "openvino", "rules": [], "predicted_low": 0.6, "predicted_high": 0.9}
    bounds = {"measured_low": measured, "measured_high": measured}
    return PredictedLever(target=target, measured=measured, **{**usual, **bounds, **more})


def test_without_earlier_searches_nothing_changes():
    assert corrected(PRIORS, []) == PRIORS


def test_a_lever_that_brought_more_than_was_predicted_is_expected_to_do_so_again():
    found = corrected(PRIORS, [searched(target, 0.35) for target in "abcdefgh"])
    assert found["openvino"].low < 0.45
    assert found["openvino"].high / found["openvino"].low == pytest.approx(1.5)
    assert found["compile"] == PRIORS["compile"]


def test_one_search_says_less_than_many():
    few, many = (
        corrections_of(searched(t, 0.35) for t in targets)["openvino"] for targets in ("a", "abcdef")
    )
    assert many < few < 1


def test_a_target_that_is_searched_again_and_again_counts_once():
    once = corrections_of([searched("a", 0.35), searched("b", 0.8)])
    again = corrections_of([*[searched("a", 0.35)] * 9, searched("b", 0.8)])
    assert again == pytest.approx(once)


def test_what_a_finding_predicted_of_a_program_says_nothing_about_others():
    assert corrections_of([searched("a", 0.35, rules=["PYR503"])]) == {}


def test_parameters_of_a_lever_share_what_is_learned():
    seen = [searched("a", 0.4, lever=f"compile(mode=default, freezing={frozen})") for frozen in (True, False)]
    assert corrections_of(seen).keys() == {"compile"}


def test_what_was_learned_already_is_not_forgotten_once_predictions_hold():
    """The range that held had been moved by 0.5: the next one is moved as far."""
    middle = math.sqrt(0.3 * 0.45)
    held = [searched(str(n), middle, predicted_low=0.3, predicted_high=0.45, learned=0.5) for n in range(50)]
    assert corrections_of(held)["openvino"] == pytest.approx(0.5, rel=0.02)
