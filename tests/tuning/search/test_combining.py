"""What is expected of a lever where others have brought theirs: between acting alike on all, and saving the same time."""

from __future__ import annotations

import pytest

from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.search.combining import expected_over, gains_of
from pyrometer.tuning.search.ordering import Prediction

CAST, DROP, OPENVINO = (LeverChoice(lever=name) for name in ("cast_bf16", "drop_dropout", "openvino"))
PLAIN = LeverChoice(lever="compile")
FROZEN = LeverChoice(lever="compile", parameters={"freezing": True})


def kept(choice, ratio, *configuration):
    return LeverOutcome(
        name=choice.lever,
        parameters=choice.parameters,
        outcome="kept",
        ratio=ratio,
        configuration=list(configuration),
    )


@pytest.mark.parametrize("share", [0.6, 0.7, 0.85, 1.0])
@pytest.mark.parametrize(("first", "second"), [(0.5, 0.6), (0.4, 0.9), (0.8, 0.5)])
def test_the_range_holds_whatever_share_of_the_step_both_act_on(share, first, second):
    parts = [1 - (1 - ratio) / share for ratio in (first, second)]  # of that share, after each by itself
    together = (1 - share + share * parts[0] * parts[1]) / first
    over = expected_over(Prediction(second, second), "compile", {"cast_bf16": first}, [CAST], [CAST, PLAIN])
    assert over.low - 1e-9 <= together <= over.high + 1e-9


def test_what_a_lever_costs_in_each_step_weighs_more_in_a_shorter_one():
    over = expected_over(Prediction(0.9, 1.2), "compile", {"cast_bf16": 0.5}, [CAST], [CAST, PLAIN])
    assert (over.low, over.high) == (0.9, pytest.approx(1.4))


def test_what_goes_with_a_lever_has_to_be_made_up_for():
    gains = {"cast_bf16": 0.5, "drop_dropout": 0.9}
    over = expected_over(Prediction(0.4, 0.6), "openvino", gains, [DROP, CAST], [DROP, OPENVINO])
    assert (over.low, over.high) == (pytest.approx(0.8), pytest.approx(0.6 / 0.9 / 0.5))


def test_other_parameters_of_a_lever_are_over_what_it_brought_already():
    over = expected_over(Prediction(0.5, 0.8), "compile", {"compile": 0.5}, [PLAIN], [FROZEN])
    assert (over.low, over.high) == (1.0, 1.6)


def test_an_executor_that_is_tried_along_counts_in():
    over = expected_over(Prediction(0.5, 0.8), "cast_bf16", {"compile": 1.2}, [], [CAST, PLAIN])
    assert (over.low, over.high) == (pytest.approx(0.6), pytest.approx(0.96))


def test_of_a_lever_that_nothing_is_known_of_nothing_is_expected():
    assert expected_over(Prediction(), "compile", {"cast_bf16": 0.5}, [CAST], [PLAIN]) == Prediction()


def test_the_gain_of_what_is_replaced_passes_to_what_replaces_it():
    found = [
        kept(DROP, 0.9, DROP),
        kept(PLAIN, 0.8, DROP, PLAIN),
        kept(CAST, 0.5, DROP, CAST, PLAIN),
        LeverOutcome(name="threads", outcome="slower", ratio=1.5),
        kept(OPENVINO, 0.7, DROP, OPENVINO),
    ]
    assert gains_of(found[:3]) == {"drop_dropout": 0.9, "compile": 0.8, "cast_bf16": 0.5}
    assert gains_of(found) == {"drop_dropout": 0.9, "openvino": pytest.approx(0.28)}
