"""The order of findings, and which count the same cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.advice import Advice, Cost, Gain
from pyrometer.place import Place
from pyrometer.rules.finding import Finding
from pyrometer.rules.ranking import promise, ranked

RATIOS = st.one_of(st.none(), st.floats(0, 1.2))


def finding(code: str = "PYR101", **more: Any) -> Finding:
    advice = Advice(slug="a", title="a", fix_class="exact", gain=more.pop("gain", None))
    fields: dict[str, Any] = {"severity": "warning", "confidence": "high", "where": Place(), **more}
    return Finding(code=code, name="n", message="m", advice=advice, **fields)


def gain(low: float | None, high: float | None = None, saves_bytes: int | None = None) -> Gain:
    return Gain(ratio_low=low, ratio_high=high, saves_bytes=saves_bytes, method="bound")


def cost(share: float | None = None, num_bytes: int | None = None) -> Cost:
    return Cost(share=share, bytes=num_bytes, method="trace")


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    low, high = draw(RATIOS), draw(RATIOS)
    return finding(
        draw(st.sampled_from(["PYR010", "PYR101", "PYR301", "PYR515"])),
        severity=draw(st.sampled_from(["error", "warning", "info"])),
        confidence=draw(st.sampled_from(["high", "medium", "low"])),
        gain=draw(st.sampled_from([None, gain(low, high, 100)])),
        cost=draw(st.sampled_from([None, cost(0.3), cost(num_bytes=50)])),
        resource=draw(st.sampled_from([None, "a", "b"])),
    )


def test_the_larger_predicted_gain_comes_first() -> None:
    small, large = (
        finding("PYR101", gain=gain(0.9, 1.0)),
        finding("PYR515", gain=gain(0.1, 0.3)),
    )
    assert ranked([small, large])[0].code == "PYR515"


def test_an_error_comes_before_any_gain() -> None:
    wrong = finding("PYR701", severity="error")
    assert ranked([finding(gain=gain(0.0, 0.0)), wrong])[0].code == "PYR701"


def test_where_nothing_is_predicted_half_of_the_cost_counts() -> None:
    assert promise(finding(cost=cost(0.5))) == 0.25
    assert promise(finding(cost=cost(num_bytes=40)), peak_bytes=100) == 0.2
    assert promise(finding(gain=gain(None, None, 30)), peak_bytes=100) == pytest.approx(0.3)
    assert promise(finding(gain=gain(0.5))) == 0.25  # in the worst case nothing
    assert promise(finding()) == 0.0


def test_a_reservation_never_stands_above_a_finding_with_a_gain() -> None:
    doubt = finding("PYR010", severity="warning", confidence="high")
    tiny = finding(severity="info", confidence="low", gain=gain(0.99999, 1.0))
    unknown_peak = finding("PYR215", severity="info", gain=gain(None, None, 10))
    order = [one.code for one in ranked([doubt, unknown_peak, tiny])]
    assert order[-1] == "PYR010"


def test_equal_promises_are_ordered_by_severity_then_confidence_then_place() -> None:
    order = ranked(
        [
            finding("PYR104", severity="info"),
            finding("PYR103", where=Place(file="a.py", line=9)),
            finding("PYR103", where=Place(file="a.py", line=2)),
            finding("PYR102", confidence="low"),
        ]
    )
    assert [(one.code, one.where.line) for one in order] == [
        ("PYR103", 2),
        ("PYR103", 9),
        ("PYR102", None),
        ("PYR104", None),
    ]


def test_of_findings_about_the_same_cost_the_later_ones_say_so() -> None:
    first = finding("PYR215", resource="op:cat", gain=gain(0.2, 0.3))
    second = finding("PYR511", resource="op:cat", gain=gain(0.3, 0.4))
    other = finding("PYR301", resource="data", gain=gain(0.5, 0.6))
    assert [one.overlaps for one in ranked([other, second, first])] == [[], ["PYR215"], []]


@given(st.lists(findings(), max_size=8), st.one_of(st.none(), st.integers(1, 1000)))
def test_ranking_loses_nothing_and_does_not_depend_on_the_order(
    found: list[Finding], peak: int | None
) -> None:
    order = ranked(found, peak_bytes=peak)
    assert len(order) == len(found)
    keys = [(one.severity != "error", -round(promise(one, peak), 4)) for one in order]
    assert keys == sorted(keys)
    again = ranked(reversed(found), peak_bytes=peak)
    assert [(one.code, one.severity, one.confidence) for one in order] == [
        (one.code, one.severity, one.confidence) for one in again
    ]
