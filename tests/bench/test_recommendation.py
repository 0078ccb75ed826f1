"""Which cell of a matrix is recommended, and what is said of the others."""

from __future__ import annotations

import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.cell import Cell, GraphCounts, OutputError, settings_label
from pyrometer.bench.matrix.recommendation import no_recommendation, recommend, rejections
from pyrometer.bench.measurement import Measurement

MIB = 2**20


def measurement(
    median_s: float, units: float, *, p99_s=None, deadline_s=None, compile_s=None, peak=300 * MIB, **more
):
    tail = p99_s or median_s * 1.2
    values = {
        "name": "net",
        "clock": "wall",
        **dict.fromkeys(("median_s", "mean_s", "min_s", "max_s", "p50_s", "p90_s", "p95_s"), median_s),
        **dict.fromkeys(("ci_low_s", "ci_high_s"), median_s),
        "p99_s": tail,
        "stdev_s": 0.0,
        "iqr_s": 0.0,
        "confidence": 0.99,
        "quantiles": [],
        "num_samples": 500,
        "effective_num_samples": 400.0,
        "autocorrelation_time": 1.2,
        "steps_per_sample": 1,
        "first_call_s": 1.0,
        "compile_s": compile_s,
        "warmup_steps": 5,
        "warmup_s": [],
        "steady": True,
        "jitter": 1.2,
        **dict.fromkeys(("throughput", "throughput_low", "throughput_high"), units / median_s),
        "unit": "frames",
        "units_per_step": units,
        "peak_bytes": peak,
        "elapsed_s": 5.0,
        "deadline_s": deadline_s,
    }
    return Measurement(**{**values, **more})


def verdict(ratio: float, outcome: str) -> Verdict:
    return Verdict(
        outcome=outcome,
        ratio=ratio,
        ci_low=ratio * 0.95,
        ci_high=ratio * 1.05,
        confidence=0.99,
        margin=0.05,
        smallest_effect=0.02,
        num_blocks=40,
        elapsed_s=5.0,
    )


def error(max_rel: float, tolerance: float = 1e-3, mismatch=None) -> OutputError:
    return OutputError(
        max_abs=max_rel,
        max_rel=max_rel,
        cosine=1.0,
        num_values=10,
        tolerance=tolerance,
        within_tolerance=mismatch is None and max_rel <= tolerance,
        mismatch=mismatch,
    )


def cell(settings, *, ratio=None, outcome="faster", off=1e-6, reference=False, **more) -> Cell:
    """A cell at 10 ms per step and `batch_size` units, unless told otherwise."""
    units = settings.get("batch_size", 1)
    failure = more.pop("failure", None)
    held = more.pop("held", 0)
    judged = more.pop("judged", error(off))
    return Cell(
        label=settings_label(settings),
        settings=settings,
        is_reference=reference,
        measurement=None
        if failure
        else measurement(more.pop("median_s", 0.010 * (ratio or 1.0)), units, **more),
        graphs=GraphCounts(num_graphs=1, num_breaks=0),
        error=None if reference or failure else judged,
        verdict=verdict(ratio, outcome) if ratio and not failure else None,
        failure=failure,
        held_bytes=held,
    )


def eager(batch=8, **more) -> Cell:
    return cell({"batch_size": batch, "mode": "eager"}, reference=True, **more)


def compiled(batch=8, ratio=0.588, **more) -> Cell:
    return cell({"batch_size": batch, "mode": "default"}, ratio=ratio, **more)


def test_the_sentence_of_a_proved_cell_has_every_figure():
    best = compiled(compile_s=21.4, peak=420 * MIB, judged=error(3.1e-4))
    recommendation = recommend([eager(), best])
    assert recommendation.label == "batch 8, default"
    assert recommendation.sentence == (
        "use default at batch 8: 1.70× (1.62–1.79) over eager float32, 21.4 s compile repaid after 5,195 steps; "
        "memory +120 MiB; error 3e-4 (within 1e-3)"
    )
    assert recommendation.break_even_steps == 5195
    assert recommendation.extra_bytes == 120 * MIB


def test_nothing_faster_keeps_eager():
    recommendation = recommend([eager(), compiled(ratio=1.1, outcome="slower")])
    assert recommendation.label == "batch 8, eager"
    assert (
        recommendation.sentence
        == "use eager float32 at batch 8: 800 frames/s, and nothing within tolerance was proved faster"
    )
    assert recommendation.speedup is None


def test_without_a_batch_axis_none_is_named():
    cells = [cell({"mode": "eager"}, reference=True), cell({"mode": "default"}, ratio=0.5)]
    assert recommend(cells).sentence.startswith(
        "use default: 2.00× (1.90–2.11) over eager float32; memory +0 B"
    )


REJECTED = {
    "slower": (compiled(ratio=1.5, outcome="slower"), "not proved faster than eager float32: 1.50× slower"),
    "same": (compiled(ratio=0.99, outcome="same"), "not proved faster than eager float32: no change"),
    "undecided": (
        compiled(ratio=0.9, outcome="undecided"),
        "not proved faster than eager float32: undecided",
    ),
    "wrong": (compiled(judged=error(4e-2, 3e-2)), "error 4e-2 above tolerance 3e-2"),
    "mismatch": (
        compiled(judged=error(0.0, mismatch="shape (1,) for (2,)")),
        "another result: shape (1,) for (2,)",
    ),
    "failed": (
        compiled(failure="step 1 raised RuntimeError: no memory"),
        "step 1 raised RuntimeError: no memory",
    ),
    "cut short": (compiled(complete=False), "not measured to the end: too little time"),
    "late": (compiled(deadline_s=0.005), "P99 7.06 ms misses the deadline of 5.00 ms"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_not_fit_for_use_is_rejected_with_its_reason(name):
    bad, reason = REJECTED[name]
    assert recommend([eager(), bad]).label == "batch 8, eager"
    (rejected,) = rejections([eager(), bad])
    assert rejected.label == bad.label
    assert reason in rejected.reason


def test_a_comparison_that_failed_is_rejected_with_why():
    bad = cell({"batch_size": 8, "mode": "default"})
    assert "not compared with eager float32" in rejections([eager(), bad])[0].reason


def test_the_best_throughput_wins_across_batch_sizes():
    cells = [
        eager(1),
        compiled(1, ratio=0.5),
        eager(8, median_s=0.040),
        compiled(8, ratio=0.8, median_s=0.032),
    ]
    recommendation = recommend(cells)
    assert recommendation.label == "batch 8, default"
    assert recommendation.throughput == pytest.approx(8 / 0.040 / 0.8)


def test_within_a_batch_the_paired_ratio_ranks_and_not_the_separate_measurements():
    """The process that measured `default` was slow; both were compared with the same reference."""
    slow_process = compiled(ratio=0.5, median_s=0.030)
    other = cell({"batch_size": 8, "mode": "max-autotune"}, ratio=0.7, median_s=0.006)
    assert recommend([eager(), slow_process, other]).label == "batch 8, default"


def test_a_deadline_rules_out_large_batches():
    cells = [eager(1, deadline_s=0.02), eager(32, median_s=0.1, deadline_s=0.02)]
    assert recommend(cells).label == "batch 1, eager"
    assert [rejection.label for rejection in rejections(cells)] == ["batch 32, eager"]


def test_nothing_fit_is_no_recommendation():
    cells = [eager(failure="no memory"), compiled(failure="no memory")]
    assert recommend(cells) is None
    assert no_recommendation(cells) == "no configuration could be measured"


def test_where_only_the_deadline_is_in_the_way_the_nearest_is_named():
    cells = [eager(deadline_s=0.002), compiled(deadline_s=0.002)]
    assert recommend(cells) is None
    assert no_recommendation(cells) == (
        "no configuration keeps the deadline of 2.00 ms: the lowest P99 is 7.06 ms, of batch 8, default"
    )


def test_random_outputs_are_recommended_with_a_reservation():
    recommendation = recommend([eager(), compiled(judged=None)])
    assert recommendation.label == "batch 8, default"
    assert "error not judged, since the outputs are random" in recommendation.sentence


def test_memory_does_not_count_the_original_beside_its_copy():
    best = cell({"batch_size": 8, "dtype": "bfloat16"}, ratio=0.5, peak=360 * MIB, held=100 * MIB)
    assert recommend([eager(), best]).extra_bytes == -40 * MIB
    assert "memory -40.0 MiB" in recommend([eager(), best]).sentence
