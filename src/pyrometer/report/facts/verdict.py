"""What a `Verdict` says, beside its sentence."""

from __future__ import annotations

from pyrometer.bench.comparison.verdict import ReferenceTests, Verdict, sentence
from pyrometer.quantity import counted, format_interval, format_ratio, format_seconds, significant
from pyrometer.report.facts.layout import Fact, Table, percent

METRIC_NAMES = {
    "wall_min": "wall time, the fastest call of each batch",
    "cpu": "CPU time",
    "device": "device time",
}


FEWEST_BLOCKS = 5
"""Of which an effect of the order can be told."""


def headline(verdict: Verdict) -> str:
    """The verdict in its fixed words, and who is compared to whom."""
    return f"{sentence(verdict)} · {verdict.candidate} against {verdict.baseline}"


def subtitle(verdict: Verdict) -> str:
    """How it was compared, and how often."""
    v = verdict
    blocks = f"{counted(v.num_blocks, 'paired block')} of {counted(v.calls_per_batch, 'call')} a side"
    interval = f"{percent(v.confidence)} interval"
    if v.num_processes is not None:
        blocks = f"{counted(v.num_processes, 'fresh process')} with {blocks}"
    return " · ".join([METRIC_NAMES[v.metric], blocks, interval, f"took {format_seconds(v.elapsed_s)}"])


def top_figures(verdict: Verdict) -> list[Fact]:
    """The figures that a reader of a comparison looks for first."""
    v = verdict
    return [
        Fact("Ratio of step times", f"{significant(v.ratio)}×", format_interval(v.ci_low, v.ci_high)),
        Fact("Baseline", format_seconds(v.baseline_s), v.baseline),
        Fact("Candidate", format_seconds(v.candidate_s), v.candidate),
        Fact(
            "Called the same within",
            f"±{percent(v.margin)}",
            f"smallest effect that counts: {percent(v.smallest_effect)}",
        ),
    ]


def ratio_table(verdict: Verdict) -> Table:
    """Each ratio that was estimated: the one that decides, wall time beside it, and the tails."""
    v = verdict
    rows = [_ratio_row("step", v.ratio, v.ci_low, v.ci_high)]
    if v.wall_ratio is not None:
        rows.append(("wall time", f"{significant(v.wall_ratio)}×", "–", "for reference"))
    rows += [
        _ratio_row(f"P{tail.quantile * 100:g}", tail.ratio, tail.ci_low, tail.ci_high) for tail in v.tails
    ]
    return Table(("time of", "candidate / baseline", f"{percent(v.confidence)} interval", "reads"), rows)


def reference_table(tests: ReferenceTests) -> Table:
    """Textbook statistics; they did not make the verdict."""
    size = f" ({tests.cohen_size})" if tests.cohen_size else ""
    rows: list[tuple[str, ...]] = [
        ("Welch's t", _figure(tests.welch_t)),
        ("Welch's p", _figure(tests.welch_p)),
        ("Cohen's d", _figure(tests.cohen_d) + size),
        ("Mann–Whitney p", _figure(tests.mann_whitney_p)),
    ]
    return Table(("statistic", "value"), rows)


def trust(verdict: Verdict) -> str:
    """What a comparison without caveats rests on."""
    v = verdict
    lead = (
        "Nothing limits the trust in this verdict" if is_sound(v) else "What has been seen does not decide it"
    )
    order = f"both sides interleaved in a random balanced order (seed {v.seed})"
    slot = (
        ""
        if v.slot_effect is None or v.num_blocks < FEWEST_BLOCKS
        else f", going first or second inside a block made {percent(abs(v.slot_effect))} difference"
    )
    processes = "" if v.num_processes is None else f" in {counted(v.num_processes, 'fresh process')}"
    return f"{lead}: {counted(v.num_blocks, 'block')}{processes}, {order}{slot}."


def is_sound(verdict: Verdict) -> bool:
    """Whether the record itself says that the verdict may be relied on."""
    return verdict.outcome != "undecided" and not verdict.caveats


def ratio_words(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval in the direction that reads naturally, where there is an interval.

    >>> ratio_words(0.5, 0.4, 0.625), ratio_words(0.5, None, None)
    ('2.00× faster (1.60–2.50)', '0.500× (not bounded)')
    """
    if low is None or high is None:
        return f"{significant(ratio)}× ({format_interval(low, high)})"
    return format_ratio(ratio, low, high)


def _ratio_row(name: str, ratio: float, low: float | None, high: float | None) -> tuple[str, ...]:
    reads, _, _ = ratio_words(ratio, low, high).partition(" (")
    return name, f"{significant(ratio)}×", format_interval(low, high), reads


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.0001" if 0 < abs(value) < 1e-4 else significant(value)
