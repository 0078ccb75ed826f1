"""Gates of what was measured in pairs, and of what was counted once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pyrometer.bench.comparison.decision import SMALLEST_EFFECT
from pyrometer.bench.comparison.textbook import reference_tests
from pyrometer.bench.comparison.verdict import Outcome, Verdict
from pyrometer.bench.matrix.cell import OutputError
from pyrometer.guard.deciding import CONFIDENCE, Judged, judge_family, p_value
from pyrometer.guard.gate import Gate, GateOutcome, Kind
from pyrometer.guard.metrics import MEASURES, Measure, series_of
from pyrometer.guard.observed import Counted
from pyrometer.guard.pairs import Sample
from pyrometer.guard.settings import GuardSettings
from pyrometer.quantity import Seconds, counted, format_percent

_COUNTERS = (
    "graph_breaks",
    "recompiles",
    "operators",
    "copies",
    "kernels",
    "device_copies",
    "artifact_bytes",
    "peak_bytes",
)
_WIDEST = math.log(100)
"""An interval that reaches farther says no more than none."""

_TIME_WORDS: Mapping[GateOutcome, Outcome] = {
    "regressed": "slower", "improved": "faster", "unchanged": "same", "undecided": "undecided",
}  # fmt: skip


def timed_gates(samples: Mapping[str, Sequence[Sample]], settings: GuardSettings) -> list[Gate]:
    """Judge every metric of every benchmark on the pairs so far; what is not decided yet is undecided.

    Args:
        samples: by benchmark, one for each pair.
        settings: the limits.
    """
    gates: dict[tuple[str, str], Gate] = {}
    for measure in MEASURES:
        series = {name: series_of(measure, own) for name, own in samples.items()}
        series = {name: values for name, values in series.items() if values}
        limits = {name: settings.limit(name, measure.name, measure.kind) for name in series}
        judged = judge_family(series, limits, decisive=measure.decisive)
        for name, one in judged.items():
            gates[name, measure.name] = _gate(name, measure, samples[name], one, limits[name])
    return [
        gates[name, measure.name] for name in samples for measure in MEASURES if (name, measure.name) in gates
    ]


def _gate(name: str, measure: Measure, samples: Sequence[Sample], judged: Judged, limit: float) -> Gate:
    figures = [both for both in map(measure.both, samples) if both is not None]
    base, head = (float(np.median([both[side] for both in figures])) for side in (0, 1))
    sign = -1.0 if measure.more_is_better else 1.0
    bounds = sorted((sign * judged.low, sign * judged.high))
    bounded = max(map(abs, bounds)) < _WIDEST and not measure.is_share
    is_time = measure.name == "median_s"
    return Gate(
        benchmark=name,
        metric=measure.name,
        kind=measure.kind,
        outcome=judged.outcome or "undecided",
        ratio=None if measure.is_share else math.exp(sign * judged.mean),
        ci_low=math.exp(bounds[0]) if bounded else None,
        ci_high=math.exp(bounds[1]) if bounded else None,
        base=base,
        head=head,
        limit=base + limit if measure.is_share else (1 + limit) ** sign,
        decisive=measure.decisive,
        warning=judged.warning,
        p_value=judged.p_value,
        log_ratios=[] if measure.is_share else [sign * value for value in series_of(measure, samples)],
        heads=[both[1] for both in figures] if is_time else [],
        measured_as=samples[0].metric if is_time else None,
        reference=reference_tests(*(np.array(side) for side in zip(*figures, strict=True)))
        if is_time
        else None,
    )


def counted_gates(name: str, base: Counted, head: Counted, settings: GuardSettings) -> list[Gate]:
    """Compare what is the same in every run: exactly, and without statistics."""
    gates = [
        _counter_gate(name, metric, base.counters[metric], head.counters[metric], settings)
        for metric in _COUNTERS
        if metric in base.counters and metric in head.counters
    ]
    return gates + ([] if head.error is None else _accuracy_gates(name, head.error, settings))


def _counter_gate(name: str, metric: str, base: float, head: float, settings: GuardSettings) -> Gate:
    kind: Kind = "memory" if metric == "peak_bytes" else "counter"
    limit = settings.limit(name, metric, kind)
    outcome: GateOutcome = "unchanged"
    warning = None
    if head > base * (1 + limit):
        outcome = "regressed"
    elif head > base * (1 + SMALLEST_EFFECT):
        warning = f"grew from {base:,.0f} to {head:,.0f}, within the limit of {format_percent(limit, 2)}"
    elif head < base:
        outcome = "improved"
    ratio = head / base if base else None
    return Gate(
        benchmark=name, metric=metric, kind=kind, outcome=outcome, ratio=ratio, ci_low=ratio, ci_high=ratio,
        base=base, head=head, limit=1 + limit, warning=warning,
    )  # fmt: skip


def _accuracy_gates(name: str, error: OutputError, settings: GuardSettings) -> list[Gate]:
    """The head's outputs against the base's, on the same weights and inputs."""
    tolerance = settings.limits.get("max_error", error.tolerance)
    least = 1 - settings.limit(name, "cosine", "accuracy")
    broken = error.mismatch is not None
    return [
        Gate(
            benchmark=name, metric="max_error", kind="accuracy", base=0.0, head=error.max_rel, limit=tolerance,
            outcome="regressed" if broken or error.max_rel > tolerance else "unchanged", warning=error.mismatch,
        ),
        Gate(
            benchmark=name, metric="cosine", kind="accuracy", base=1.0, head=error.cosine, limit=least,
            outcome="regressed" if error.cosine < least else "unchanged",
        ),
    ]  # fmt: skip


def self_verdict(
    samples: Mapping[str, Sequence[Sample]], settings: GuardSettings, elapsed_s: Seconds
) -> Verdict | None:
    """Base against base, by the same rule: of several benchmarks the one that alarms, or that is furthest from 1."""
    series = {
        name: [sample.again for sample in own if sample.again is not None] for name, own in samples.items()
    }
    series = {name: values for name, values in series.items() if values}
    if not series:
        return None
    limits = {name: settings.limit(name, "median_s", "time") for name in series}
    judged = judge_family(series, limits, decisive=True)
    name = max(judged, key=lambda one: (_alarms(judged[one]), abs(judged[one].mean)))
    one, values = judged[name], series[name]
    bounded = math.isfinite(one.low)
    outcome = "slower" if one.warning else _TIME_WORDS[one.outcome or "undecided"]
    return Verdict(
        outcome=outcome,
        ratio=math.exp(one.mean),
        ci_low=math.exp(one.low) if bounded else None,
        ci_high=math.exp(one.high) if bounded else None,
        confidence=CONFIDENCE,
        margin=limits[name],
        smallest_effect=min(SMALLEST_EFFECT, 0.4 * limits[name]),
        num_blocks=sum(sample.num_blocks for sample in samples[name][: len(values)]),
        num_processes=len(values),
        elapsed_s=elapsed_s,
        baseline=f"{name} (base)",
        candidate=f"{name} (base again)",
        metric=samples[name][0].metric,
        log_ratios=values,
        p_value=p_value(values),
        reason=None if one.outcome else f"{counted(len(values), 'pair')} do not tell",
    )


def _alarms(judged: Judged) -> bool:
    """Whether base against base shows a difference, in either direction or within the limit."""
    return judged.outcome in {"regressed", "improved"} or judged.warning is not None


def alarmed(verdict: Verdict | None) -> bool:
    """Whether a self-check found a difference where there is none.

    >>> alarmed(None)
    False
    """
    return verdict is not None and verdict.outcome in {"slower", "faster"}
