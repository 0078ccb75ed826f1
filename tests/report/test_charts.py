"""Scales, bins and the drawings."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyrometer.report.chapters.measurement import split
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.forest import forest
from pyrometer.report.charts.histogram import histogram
from pyrometer.report.charts.line import memory_line
from pyrometer.report.charts.scale import BYTES, SECONDS, Scale, fit, plain, ticks
from pyrometer.report.charts.shares import share_bar
from pyrometer.report.charts.strip import steady_strip, warmup_strip
from pyrometer.report.charts.svg import tag

durations = st.floats(1e-8, 1e4)
samples = st.lists(durations, min_size=1, max_size=60)


@example(10000.0, 9999.999999999998, plain, False, 3)
@given(durations, durations, st.sampled_from([SECONDS, BYTES, plain]), st.booleans(), st.integers(3, 9))
def test_ticks_are_few_distinct_and_on_the_axis(a, b, unit, log, most):
    scale = fit([a, b], log_above=3.0 if log else float("inf"))
    found = ticks(scale, unit, most)
    values = [value for value, _ in found]
    assert len(found) <= most
    assert values == sorted(set(values))
    assert all(scale.low * (1 - 1e-9) - 1e-12 <= value <= scale.high * (1 + 1e-9) for value in values)
    assert len({label for _, label in found}) == len(found)


@given(samples, st.booleans())
def test_every_sample_is_in_one_bin(values, log):
    scale = fit(values, pad=0, log_above=4.0 if log else float("inf"))
    counts = count_bins(values, scale.edges(bin_count(values, scale)))
    assert sum(counts) == len(values)
    assert 12 <= len(counts) <= 96


@given(samples)
def test_positions_lie_on_the_axis_and_keep_the_order(values):
    scale = fit(values, log_above=4.0)
    places = [scale(value) for value in sorted(values)]
    assert all(0 <= place <= 1 for place in places)
    assert places == sorted(places)


@given(samples, samples, st.one_of(st.none(), durations))
def test_any_measurement_can_be_drawn(perception, steady, warmup, deadline):
    ordered = sorted(steady)
    middle, last = ordered[len(ordered) // 2], ordered[-1]
    measurement = msgspec.structs.replace(
        perception.evidence.measurement, samples_s=steady, warmup_s=warmup, first_call_s=warmup[0], deadline_s=deadline,
        median_s=middle, p50_s=middle, p90_s=last, p95_s=last, p99_s=last, ci_low_s=ordered[0], ci_high_s=last,
        min_s=ordered[0], max_s=last, iqr_s=0.0,
    )  # fmt: skip
    for drawing in (histogram(measurement), steady_strip(measurement), warmup_strip(measurement)):
        assert drawing is None or "nan" not in drawing


def test_histogram_bars_hold_every_sample(perception):
    titles = re.findall(r"<title>(\d+) between", histogram(perception.evidence.measurement))
    beyond = re.findall(r">(\d+) slower, up to", histogram(perception.evidence.measurement))
    assert sum(map(int, titles + beyond)) == len(perception.evidence.measurement.samples_s)


def test_far_hiccups_are_counted_and_do_not_flatten_the_rest(perception):
    m = perception.evidence.measurement
    drawn = histogram(msgspec.structs.replace(m, samples_s=[*m.samples_s, 9.0], max_s=9.0))
    assert "1 slower, up to 9.00 s →" in drawn


def test_axis_is_logarithmic_when_the_spread_asks_for_it(perception):
    m = perception.evidence.measurement
    wide = [0.001 * 1.04**i for i in range(150)]
    measurement = msgspec.structs.replace(
        m, samples_s=wide, max_s=wide[-1], min_s=wide[0], p50_s=wide[75], p90_s=wide[135], p95_s=wide[142], p99_s=wide[148],
        iqr_s=wide[112] - wide[37], deadline_s=None,
    )  # fmt: skip
    labels = re.findall(r'class="tick"[^>]*>([^<]+)<', histogram(measurement))
    assert {"1 ms", "10 ms", "100 ms"} <= set(labels)


def test_few_samples_make_no_histogram(documents):
    assert histogram(documents["interrupted"].evidence.measurement) is None


def test_deadline_is_drawn_where_there_is_one(perception, documents):
    assert "deadline 33.3 ms" in histogram(perception.evidence.measurement)
    assert "deadline" not in histogram(documents["gpu"].evidence.measurement)


def test_segments_cover_the_bar(documents):
    widths = re.findall(
        r'<rect class="segment[^>]* width="([\d.]+)%"',
        share_bar(*split(documents["training"].evidence.measurement)[0].blocks[0][:2]),
    )
    assert sum(map(float, widths)) == pytest.approx(100, abs=0.1)


def test_forest_has_a_dot_per_block_and_a_row_per_ratio(documents):
    drawn = forest(documents["verdict_slower"].verdict)
    assert drawn.count('class="block"') == 40
    assert drawn.count("<path") == 2


def test_memory_needs_two_values(perception):
    memory = perception.evidence.measurement.memory
    assert memory_line(msgspec.structs.replace(memory, steps=[1], series_bytes=[5])) is None
    assert "peak 683 MiB" in memory_line(memory)


def test_names_are_escaped():
    assert tag("text", "<b>&", title='"x"') == '<text title="&#34;x&#34;">&lt;b&gt;&amp;</text>'


def test_ticks_of_a_narrow_axis_have_the_digits_they_need():
    assert [label for _, label in ticks(Scale(0.032001, 0.032005), SECONDS, 5)] == [
        "32.001 ms", "32.002 ms", "32.003 ms", "32.004 ms", "32.005 ms",
    ]  # fmt: skip
