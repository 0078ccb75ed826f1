"""What is drawn of a measurement equals what was measured."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest

from pyrometer.report.attachments import Attachments
from pyrometer.report.payloads.measurement import blocks, ecdf, measurement_view
from pyrometer.report.payloads.series import MOST_LAGS, correlogram, rounded, time_blocks
from pyrometer.series import extremes


def autoregressive(phi: float, n: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=n)
    series = np.empty(n)
    series[0] = noise[0] / math.sqrt(1 - phi**2)
    for i in range(1, n):
        series[i] = phi * series[i - 1] + noise[i]
    return 1.0 + 0.01 * series


def test_autocorrelation_of_a_known_process():
    """An AR(1) process has r(k) = phi^k."""
    found = correlogram(autoregressive(0.7))
    assert found is not None
    assert len(found.values) == MOST_LAGS
    expected = [0.7**lag for lag in range(1, 11)]
    assert found.values[:10] == pytest.approx(expected, abs=0.04)
    assert found.band == pytest.approx(1.96 / math.sqrt(20_000))
    assert found.beyond == sum(abs(value) > found.band for value in found.values)


def test_independent_samples_stay_in_the_band():
    outside = 0
    for seed in range(50):
        found = correlogram(np.random.default_rng(seed).normal(size=400))
        assert found is not None
        outside += found.beyond
    assert 0.02 < outside / (50 * MOST_LAGS) < 0.08


@pytest.mark.parametrize("values", [np.ones(500), np.arange(19.0), np.array([])])
def test_no_autocorrelation_without_samples_or_differences(values):
    assert correlogram(values) is None


def test_thinning_keeps_every_outlier_and_the_order():
    rng = random.Random(1)
    values = [rng.gauss(1.0, 0.01) for _ in range(40_000)]
    for place in (0, 17_123, 39_999):
        values[place] = 9.0
    values[20_000] = 0.1
    kept = extremes(values, most=5000)
    assert len(kept) <= 5000
    assert kept == sorted(set(kept))
    assert {0, 17_123, 20_000, 39_999} <= set(kept)
    assert extremes([1.0] * 3, most=5000) == [0, 1, 2]


def test_blocks_cover_all_samples_once_and_hold_their_medians():
    values = np.concatenate([np.full(100, 1.0), np.full(100, 2.0)]) + np.random.default_rng(0).normal(
        0, 0.01, 200
    )
    found = time_blocks(values)
    assert [block.first for block in found] == [0, *(block.end for block in found[:-1])]
    assert found[-1].end == 200
    for block in found:
        assert block.median_s == pytest.approx(float(np.median(values[block.first : block.end])))
        if block.low_s is not None and block.high_s is not None:  # too few independent ones
            assert block.low_s <= block.median_s <= block.high_s
    assert sum(block.low_s is not None for block in found) > len(found) / 2
    assert time_blocks(np.ones(29)) == []


def test_distribution_is_exact_and_thinned_evenly():
    samples = np.random.default_rng(3).normal(1.0, 0.1, 9000)
    values, shares = ecdf(samples)
    assert len(values) == 2000
    assert (values[0], values[-1], shares[-1]) == (samples.min(), samples.max(), 1.0)
    for value, share in list(zip(values, shares, strict=True))[::100]:
        assert share == pytest.approx((samples <= value).mean())


def test_view_of_a_steady_measurement(documents):
    m = documents["steady"].evidence.measurement
    view = measurement_view(m)
    assert view.spread is not None
    assert sum(view.spread.counts) + view.spread.beyond == len(m.samples_s)
    assert len(view.spread.edges_s) == len(view.spread.counts) + 1
    marks = {mark.name: mark for mark in view.spread.marks}
    assert set(marks) == {"median", "P90", "P95", "P99", "deadline"}
    assert (marks["median"].low_s, marks["median"].high_s) == (m.ci_low_s, m.ci_high_s)
    assert marks["deadline"].value_s == m.deadline_s
    assert view.course is not None
    assert view.course.samples_s == rounded(m.samples_s)
    assert view.course.index == list(range(m.num_samples))
    assert view.course.thinned is None
    assert view.course.trend is not None
    assert view.course.trend.trend in {"flat", "undecided"}
    quartiles = np.quantile(m.samples_s, [0.25, 0.75])
    reach = 3 * (quartiles[1] - quartiles[0])
    beyond = [i for i, s in enumerate(m.samples_s) if not quartiles[0] - reach <= s <= quartiles[1] + reach]
    assert view.course.outliers == beyond != []


def test_drift_is_seen(documents):
    trend = measurement_view(documents["not_steady"].evidence.measurement).course.trend
    assert trend.trend == "rising"
    assert trend.end_s / trend.start_s - 1 == pytest.approx(0.4, abs=0.1)
    assert trend.low < trend.change < trend.high


def test_samples_that_were_not_kept_are_spoken_of(documents):
    m = msgspec.structs.replace(documents["gpu"].evidence.measurement, num_samples=10_000)
    view = measurement_view(m)
    assert view.course.index[0] == 0
    assert view.course.index[-1] == 9_999
    assert view.course.blocks[-1].end == 10_000
    assert (
        view.course.thinned == "2,000 of 10,000 samples were kept, evenly over time; the figures are of all"
    )
    assert view.correlogram.every == 5


def test_few_samples_give_what_they_can(documents):
    view = measurement_view(documents["interrupted"].evidence.measurement)
    assert view.spread is None
    assert view.correlogram is None
    assert view.course.blocks == []
    assert view.course.trend is None
    nothing = msgspec.structs.replace(documents["interrupted"].evidence.measurement, samples_s=[])
    assert measurement_view(nothing).course is None


def test_equal_samples_are_drawn_too(documents):
    m = msgspec.structs.replace(
        documents["steady"].evidence.measurement, samples_s=[0.01] * 100, p50_s=0.01, p90_s=0.01, p95_s=0.01, p99_s=0.01,
        iqr_s=0.0, median_s=0.01, deadline_s=None,
    )  # fmt: skip
    view = measurement_view(m)
    assert view.course.outliers == []
    assert view.spread.steps_s == [0.01]


def test_one_block_where_something_was_measured(documents):
    names = {
        name: [block.name for block in blocks(document, Attachments())]
        for name, document in documents.items()
    }
    assert names["steady"] == names["soak"] == ["measurement"]
    assert names["no_step"] == names["verdict_same"] == names["matrix"] == []
