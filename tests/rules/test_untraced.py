"""A share of a trace as the range of shares that it can be without the profiler: the truth, where it is known, lies within."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.rules.case import Case
from pyrometer.rules.untraced import Share, phase_share, stretch, untraced

TIMES = st.floats(0.01, 10)
PRICES = st.floats(0, 5)


def seen(
    *steps_s: float,
    without_s: float | None,
    phases: dict[str, float] | None = None,
    num_events: int = 100_000_000,
) -> Case:
    """Case of nothing but lengths of steps, traced with so many entries that these may have taken all, and as measured."""
    starts = range(0, 100 * len(steps_s), 100)
    steps = [
        SimpleNamespace(start_ns=at * 10**9, end_ns=round((at + length) * 10**9))
        for at, length in zip(starts, steps_s, strict=True)
    ]
    measured = SimpleNamespace(
        complete=without_s is not None,
        ci_low_s=without_s or 0.0,
        phases=[SimpleNamespace(name=name, share=share) for name, share in (phases or {}).items()],
    )
    trace: Any = SimpleNamespace(steps=steps, num_events=num_events)
    measurement: Any = measured
    return Case(target="test", trace=trace, measurement=measurement)


@given(thing=TIMES, rest=TIMES, on_thing=st.floats(0, 1), on_rest=PRICES)
def test_of_short_calls_the_truth_lies_within_if_the_profiler_at_most_doubles_them(
    thing: float, rest: float, on_thing: float, on_rest: float
) -> None:
    price = on_thing * thing
    step, traced = thing + rest, thing + rest + price + on_rest
    share = untraced(seen(traced, without_s=step), (thing + price) / traced, short=True)
    assert share.least - 1e-6 <= thing / step <= share.most + 1e-6


@given(thing=TIMES, rest=TIMES, on_rest=PRICES)
def test_of_long_calls_which_the_profiler_does_not_lengthen_the_most_is_the_truth(
    thing: float, rest: float, on_rest: float
) -> None:
    step, traced = thing + rest, thing + rest + on_rest
    share = untraced(seen(traced, without_s=step), thing / traced)
    assert share.most == pytest.approx(thing / step, abs=1e-6)
    assert share.least == pytest.approx(thing / traced)


@given(thing=TIMES, rest=TIMES, on_thing=PRICES, on_rest=PRICES)
def test_no_share_is_more_than_the_most_wherever_the_profilers_time_went(
    thing: float, rest: float, on_thing: float, on_rest: float
) -> None:
    step, traced = thing + rest, thing + rest + on_thing + on_rest
    assert thing / step <= untraced(seen(traced, without_s=step), (thing + on_thing) / traced).most + 1e-6


@given(share=st.floats(0, 1), step=TIMES, traced=TIMES, phase=st.floats(0, 1), short=st.booleans())
def test_a_range_is_one_whatever_was_measured(
    share: float, step: float, traced: float, phase: float, short: bool
) -> None:
    evidence = seen(traced, without_s=step, phases={"forward": phase})
    found = untraced(evidence, share, short=short, phase="forward")
    assert 0 <= found.least <= found.most <= phase


def test_a_profiler_that_costs_nothing_leaves_a_share_as_it_is() -> None:
    assert untraced(seen(2.0, without_s=2.0), 0.3, short=True) == pytest.approx((0.3, 0.3))


def test_where_the_step_without_the_profiler_is_not_known_a_share_is_taken_as_it_is() -> None:
    assert untraced(seen(2.0, without_s=None), 0.3, short=True) == (0.3, 0.3)
    assert untraced(Case(target="test"), 0.3) == (0.3, 0.3)


def test_what_lies_in_a_phase_takes_no_more_than_the_phase_did() -> None:
    evidence = seen(3.0, without_s=1.0, phases={"forward": 0.5, "backward": 0.5})
    assert untraced(evidence, 0.4, phase="forward").most == 0.5
    assert untraced(evidence, 0.4).most == 1.0
    assert phase_share(evidence, "data") == 1.0
    assert phase_share(evidence, "data", unknown=0.0) == 0.0


def test_the_fastest_traced_step_counts_since_other_programs_lengthen_some() -> None:
    assert stretch(seen(9.0, 3.0, 4.0, without_s=2.0)) == pytest.approx(1.5)
    assert stretch(seen(1.0, without_s=2.0)) == 1.0


def test_the_capture_tells_the_step_without_the_profiler_where_nothing_was_measured() -> None:
    capture: Any = SimpleNamespace(step_untraced_s=0.5)
    traced = seen(1.0, without_s=None)
    assert stretch(Case(target="test", trace=traced.trace, capture=capture)) == pytest.approx(2)


def test_at_best_the_most_goes_and_at_worst_the_least() -> None:
    gain = Share(0.5, 0.8).gain("removal")
    assert (gain.ratio_low, gain.ratio_high) == pytest.approx((0.2, 0.5))
    partly = Share(0.5, 0.8).gain("bound", best=0.5, worst=0.0)
    assert (partly.ratio_low, partly.ratio_high) == pytest.approx((0.6, 1.0))
    assert Share(0.0, 1.0).gain("removal").ratio_low == 0


def test_what_a_profiler_cannot_have_taken_for_its_entries_lengthened_all_of_a_step() -> None:
    few, many = (stretch(seen(3.0, without_s=1.0, num_events=number)) for number in (100_000, 10_000_000))
    assert (few, many) == (pytest.approx(3.0 / 2.7), 3.0)
