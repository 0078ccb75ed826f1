"""What is known of levers on other models decides their order, and is told as their prediction."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from msgspec.structs import replace

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.levers.registry import levers
from pyrometer.tuning.search.ordering import Prediction, in_order
from pyrometer.tuning.search.priors import priors_of, with_priors
from pyrometer.tuning.trials.composition import Composition

MULTIPLYING = Composition(num_calls=30, num_products=8, call_s=5e-6, step_s=0.1, least_share=0.6)
CONVOLVING = replace(MULTIPLYING, convolution_share=1.0)


def first_of(device, step_s, *names):
    listed = {name: [LeverChoice(lever=name)] for name in names}
    return [
        choice.lever for choice in in_order(listed, priors_of(device, replace(MULTIPLYING, step_s=step_s)))
    ]


def test_every_prior_is_a_range_of_a_lever_that_exists():
    text = resources.files("pyrometer.tuning.search").joinpath("priors.json").read_text(encoding="utf-8")
    tables = json.loads(text)
    kinds = [levers_of for kinds in tables["shares"].values() for levers_of in kinds.values()]
    for levers_of in (*kinds, tables["calls"]):
        assert levers_of.keys() <= levers().keys()
        for ranges in levers_of.values():
            assert all(0 <= low <= high for low, high in ranges.values())


def test_what_loses_on_such_machines_is_tried_last():
    names = ("cast_bf16", "drop_dropout", "openvino")
    assert first_of("cpu", 0.1, *names)[-1] == "cast_bf16"
    assert first_of("cpu with bfloat16", 0.1, *names)[-1] == "drop_dropout"


def test_a_step_that_is_all_calls_is_exported_before_it_is_compiled():
    assert first_of("cpu", 1e-4, "compile", "onnxruntime", "openvino")[0] == "onnxruntime"


def test_compiling_pays_with_many_small_operators_and_not_with_few():
    few, many = (
        priors_of("cpu", Composition(num_calls=n, num_products=n // 3, call_s=5e-6, step_s=n * 8e-6))[
            "compile"
        ]
        for n in (6, 300)
    )
    assert few.low * few.high > 1
    assert many.high < 0.7


def test_what_convolutions_gain_counts_by_their_share_of_the_arithmetic():
    patches = replace(CONVOLVING, convolution_share=0.03)  # a vision transformer's
    assert priors_of("cpu", patches)["channels_last"].low > 0.95
    assert priors_of("cpu", CONVOLVING)["channels_last"].low < 0.7


def test_another_precision_promises_much_where_large_products_take_the_step_and_what_fuses_does_elsewhere():
    fast, slow = (
        priors_of("cpu with bfloat16", replace(MULTIPLYING, least_share=share)) for share in (0.9, 0.1)
    )
    assert fast["cast_bf16"].high < 0.75
    assert slow["cast_bf16"].high > 0.95
    for name in ("compile", "openvino", "onnxruntime"):
        assert fast[name].high > 0.9
        assert slow[name].low < 0.6


def test_autocast_pays_for_weights_that_it_converts_in_each_step():
    few_rows = priors_of("cpu with bfloat16", replace(MULTIPLYING, weights_s=0.08))
    assert few_rows["autocast_bf16"].high > 1.5
    assert few_rows["cast_bf16"].low < few_rows["autocast_bf16"].low


@pytest.mark.parametrize(
    ("device", "made_of"), [("mps", MULTIPLYING), ("cpu", replace(MULTIPLYING, num_products=0))]
)
def test_of_other_machines_and_of_steps_without_products_nothing_is_known(device, made_of):
    assert priors_of(device, made_of) == {}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((None, None), (0.5, 0.6)),
        ((0.2, 1.0), (0.5, 0.6)),
        ((0.55, 1.0), (0.55, 0.6)),
        ((0.7, 0.8), (0.7, 0.8)),
    ],
    ids=["none", "a bound", "both", "apart"],
)
def test_the_range_of_a_finding_is_narrowed_by_what_others_gained_where_both_can_be_true(told, expected):
    joined = with_priors({"compile": Prediction(*told, ("C101",))}, {"compile": Prediction(0.5, 0.6)})
    assert joined["compile"] == Prediction(*expected, ("C101",))
