"""What was measured bounds what is predicted: no gain is better than the step without its place."""

from __future__ import annotations

from typing import Any

import pytest

from pyrometer.advice import Gain
from pyrometer.bench.ceiling import Ceiling
from pyrometer.place import Place
from pyrometer.rules.bounded import OF_THE_LOADER, OF_THE_PLACE, bounded
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule, rules


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


LOADER = ceiling(where=Place(phase="data"), what="loader", last_line=None)


def finding(name: str = "item-in-hot-loop", line: int | None = 15, **gain: Any) -> Finding:
    return find_rule(name).finding(
        message="it costs",
        where=Place(file="project/model.py", line=line),
        confidence="high",
        advice="change it",
        gain=Gain(**{"ratio_low": 0.1, "ratio_high": 0.9, "method": "removal"} | gain),
    )


def range_of(told: Finding) -> tuple[float | None, float | None]:
    assert told.advice.gain is not None
    return told.advice.gain.ratio_low, told.advice.gain.ratio_high


def test_the_best_case_is_the_step_without_the_place_and_says_so() -> None:
    told = bounded(finding(), [ceiling()])
    assert range_of(told) == (0.4, 0.9)
    assert told.advice.gain.method == "removal; the best case is measured: the step without `Net.forward`"  # type: ignore[union-attr]


def test_of_places_within_each_other_the_one_that_brings_least_bounds() -> None:
    assert range_of(bounded(finding(), [ceiling(low=0.2), ceiling(12, 16, low=0.6)])) == (0.6, 0.9)


def test_a_worst_case_beyond_the_ceiling_is_no_longer_believed() -> None:
    assert range_of(bounded(finding(ratio_high=0.2), [ceiling()])) == (0.4, 0.4)


def test_cutting_out_what_costs_nothing_promises_nothing() -> None:
    assert range_of(bounded(finding(), [ceiling(low=1.02)])) == (1.0, 1.0)


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
    assert bounded(told, ceilings) == told


def test_the_loader_bounds_what_is_said_of_it() -> None:
    assert range_of(bounded(finding("python-heavy-collate"), [ceiling(), LOADER])) == (0.4, 0.9)


def test_rules_that_are_bounded_by_the_loader_are_about_data() -> None:
    families = {rule.name: rule.family for rule in rules()}
    assert {families[name] for name in OF_THE_LOADER} == {"data"}
    assert "data" not in {families.get(name) for name in OF_THE_PLACE}


def test_every_rule_that_is_bounded_exists() -> None:
    assert {rule.name for rule in rules()} >= OF_THE_PLACE | OF_THE_LOADER
