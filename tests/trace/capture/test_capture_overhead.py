"""How much slower a step is under the profiler."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.capture.overhead import CONFIDENCE, _rank, overhead, step_cost

times = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


@given(times, times)
def test_the_ratio_lies_in_its_interval(untraced, traced):
    found = overhead(untraced, traced)
    if found.low is not None:
        assert found.low * (1 - 1e-12) <= found.ratio <= found.high * (1 + 1e-12)


@given(times, st.floats(1.0, 20.0))
def test_a_factor_is_found_exactly_in_equal_samples(untraced, factor):
    found = overhead(untraced, [time * factor for time in untraced])
    assert found.ratio == pytest.approx(factor)


@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 10), (3, 9), (6, 5)])
def test_the_interval_is_exact(m, n):
    """P(U <= k) by counting every order of the two samples."""
    counts = np.zeros(m * n + 1)
    for places in combinations(range(m + n), m):
        counts[sum(places) - m * (m - 1) // 2] += 1
    chances = np.cumsum(counts) / counts.sum()
    allowed = np.flatnonzero(chances <= (1 - CONFIDENCE) / 2)
    assert _rank(m, n, (1 - CONFIDENCE) / 2) == (allowed[-1] if len(allowed) else None)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), times)
def test_the_overhead_follows_from_the_steps_that_are_told(untraced, traced):
    found = step_cost(untraced, traced)
    assert found["overhead_ratio"] == pytest.approx(found["step_traced_s"] / found["step_untraced_s"])


def test_too_few_steps_have_no_interval():
    assert overhead([1.0, 1.0], [2.0]).low is None
    assert overhead([], [1.0]) is None
