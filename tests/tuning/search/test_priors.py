"""What is known of levers on other models decides their order, and is told as their prediction."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.registry import levers
from pyrometer.tuning.search.ordering import Prediction, in_order
from pyrometer.tuning.search.priors import priors_of, with_priors


def first_of(device, family, step_s, *names):
    listed = {name: [LeverChoice(lever=name)] for name in names}
    return [choice.lever for choice in in_order(listed, priors_of(device, family, step_s))]


def test_every_prior_is_a_range_of_a_lever_that_exists():
    text = resources.files("pyrometer.tuning.search").joinpath("priors.json").read_text(encoding="utf-8")
    for families in json.loads(text).values():
        for ranges in families.values():
            assert ranges.keys() <= levers().keys()
            assert all(0 < low < high for low, high in ranges.values())


def test_what_loses_on_such_machines_is_tried_last():
    names = ("cast_bf16", "drop_dropout", "openvino")
    assert first_of("cpu", "products", 0.1, *names)[-1] == "cast_bf16"
    assert first_of("cpu with bfloat16", "products", 0.1, *names)[-1] == "drop_dropout"


def test_a_step_below_a_millisecond_is_exported_before_it_is_compiled():
    assert first_of("cpu", "products", 1e-4, "compile", "onnxruntime", "openvino")[0] == "onnxruntime"


def test_of_other_machines_nothing_is_known():
    assert priors_of("mps", "products", 0.1) == {}
    assert priors_of("cpu", "", 0.1) == {}


@pytest.mark.parametrize(("low", "expected"), [(None, 0.5), (0.7, 0.7)])
def test_the_range_of_a_finding_comes_before_that_of_other_models(low, expected):
    finding = Prediction(low, None if low is None else 0.8, ("C101",))
    joined = with_priors({"compile": finding}, {"compile": Prediction(0.5, 0.6)})["compile"]
    assert (joined.low, joined.rules) == (expected, ("C101",))
