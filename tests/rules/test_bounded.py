"""What was measured bounds what is predicted, and what a place is there for goes with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.advice import Cost, Gain
from pyrometer.bench.ceiling import Ceiling
from pyrometer.host.profile import HostFunction, HostLeaf, HostLine, HostProfile
from pyrometer.place import Place
from pyrometer.rules.bounded import LONGER, OF_THE_LOADER, OF_THE_PLACE, bounded
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule, rules
from pyrometer.source.module import Module


def ceiling(first: int = 10, last: int = 20, low: float = 0.4, **fields: Any) -> Ceiling:
    told = {
        "where": Place(file="/home/me/project/model.py", line=first, function="Net.forward"),
        "what": "function",
        "last_line": last,
        "calls_per_step": 1,
        "ratio": low + 0.05,
        "ratio_low": low,
        "ratio_high": low + 0.1,
        "pairs": 20,
        "same_inputs": False,
        "same_results": False,
    }
    return Ceiling(**told | fields)


WORST = 0.9 / (0.9 + 0.1 / LONGER)
"""Of the findings below, at another time."""

LOADER = ceiling(where=Place(phase="data"), what="loader", last_line=None)


def finding(
    name: str = "item-in-hot-loop", line: int | None = 15, share: float | None = None, **gain: Any
) -> Finding:
    return find_rule(name).finding(
        message="it costs",
        where=Place(file="project/model.py", line=line),
        confidence="high",
        advice="change it",
        gain=Gain(**{"ratio_low": 0.1, "ratio_high": 0.9, "method": "removal"} | gain),
        cost=None if share is None else Cost(share=share, method="samples"),
        links=["/host/lines/0"],
    )


def case(*ceilings: Ceiling, host: HostProfile | None = None, text: str = "") -> Case:
    return Case(
        target="a",
        ceilings=list(ceilings),
        host=host,
        modules=(Module.parse("/home/me/project/model.py", text),),
    )


def range_of(told: Finding) -> tuple[float | None, float | None]:
    assert told.advice.gain is not None
    return told.advice.gain.ratio_low, told.advice.gain.ratio_high


def test_the_best_case_is_the_step_without_the_place_and_says_so() -> None:
    told = bounded(finding(), case(ceiling()))
    assert range_of(told) == (0.4, pytest.approx(WORST))
    assert told.advice.gain.method == "removal; the best case is measured: the step without `Net.forward`"  # type: ignore[union-attr]


def test_of_places_within_each_other_the_one_that_brings_least_bounds() -> None:
    assert range_of(bounded(finding(), case(ceiling(low=0.2), ceiling(12, 16, low=0.6)))) == (
        0.6,
        pytest.approx(WORST),
    )


def test_a_worst_case_beyond_the_ceiling_is_no_longer_believed() -> None:
    assert range_of(bounded(finding(ratio_high=0.2), case(ceiling()))) == (0.4, 0.4)


def test_cutting_out_what_costs_nothing_promises_nothing() -> None:
    assert range_of(bounded(finding(), case(ceiling(low=1.02)))) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("told", "ceilings"),
    [
        (finding(line=9), [ceiling()]),
        (finding(line=21), [ceiling()]),
        (finding(line=None), [ceiling()]),
        (finding(), [ceiling(where=Place(file="/home/me/other.py", line=10))]),
        (finding(), [ceiling(low=0.05)]),
        (finding(), []),
        (finding(), [LOADER]),
        (finding(measured=True), [ceiling()]),
        (finding(ratio_low=None, ratio_high=None), [ceiling()]),
        (finding("nchw-convolutions"), [ceiling()]),
        (finding("many-tiny-kernels"), [ceiling()]),
        (finding("unpinned-loader"), [LOADER]),
    ],
)
def test_what_the_place_does_not_bound_stays(told: Finding, ceilings: list[Ceiling]) -> None:
    assert range_of(bounded(told, case(*ceilings))) == range_of(bounded(told, case()))


@given(low=st.floats(0, 1), width=st.floats(0, 1))
def test_at_another_time_what_goes_may_take_more_of_the_step_or_less(low: float, width: float) -> None:
    high = min(1.0, low + width * (1 - low))
    known = range_of(bounded(finding(ratio_low=low, ratio_high=high), case()))
    assert known[0] is not None
    assert known[1] is not None
    assert low / (LONGER + 0.01) <= known[0] <= low
    assert high <= known[1] + 1e-12 <= min(1.0, high * (LONGER + 0.01)) + 1e-9


def test_the_loader_bounds_what_is_said_of_it() -> None:
    assert range_of(bounded(finding("python-heavy-collate"), case(ceiling(), LOADER))) == (
        0.4,
        pytest.approx(WORST),
    )


def test_rules_that_are_bounded_by_the_loader_are_about_data() -> None:
    families = {rule.name: rule.family for rule in rules()}
    assert {families[name] for name in OF_THE_LOADER} == {"data"}
    assert "data" not in {families.get(name) for name in OF_THE_PLACE}


def test_every_rule_that_is_bounded_exists() -> None:
    assert {rule.name for rule in rules()} >= OF_THE_PLACE | OF_THE_LOADER


PENALTY = """def penalty(weights):
    total = 0.0
    for weight in weights:
        total = total + weight.pow(2).sum()
    return total
"""


def profiled(function_s: float, line_s: float = 0.2) -> HostProfile:
    """A second per step, of which the penalty takes so much, and the line within its loop."""
    line = Place(file="/home/me/project/model.py", line=4, function="penalty")
    leaf = HostLeaf(kind="operator", name="Tensor.pow", seconds_per_step=line_s)
    return HostProfile(
        steps=50,
        samples=10_000,
        interval_s=0.001,
        step_s=1.0,
        lines=[HostLine(where=line, own_s=line_s, total_s=line_s, leaves=[leaf])],
        functions=[HostFunction(where=line, first_line=1, own_s=function_s, total_s=function_s)],
    )


LOOP = finding("costly-place", line=4, share=0.2, ratio_low=0.79, ratio_high=0.85)


def test_its_function_goes_with_the_place_and_at_worst_the_most_of_it() -> None:
    low, high = range_of(bounded(LOOP, case(host=profiled(0.4), text=PENALTY)))
    assert low == pytest.approx(0.6 / (0.6 + LONGER * 0.4), abs=0.03)
    assert high == pytest.approx(0.775 / (0.775 + 0.225 / LONGER), abs=0.01)


def test_of_a_function_that_was_cut_out_both_ends_follow_from_the_experiment() -> None:
    cut = ceiling(1, 5, low=0.5)  # and 0.6 at most
    told = bounded(LOOP, case(cut, host=profiled(0.4), text=PENALTY))
    assert range_of(told) == (pytest.approx(0.5), pytest.approx(1 - 0.4 * 0.75 * 0.75, abs=0.01))
    assert told.advice.gain is not None
    assert told.advice.gain.method.endswith("measured: the step without `Net.forward`")


def test_of_a_function_that_does_something_else_only_the_place_goes() -> None:
    assert range_of(bounded(LOOP, case(host=profiled(0.7), text=PENALTY))) == range_of(bounded(LOOP, case()))
