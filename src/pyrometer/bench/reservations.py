"""Which caveats a measurement earns: one small check per doubt, in an explicit list."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrometer.bench.machine import machine_caveats
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import Caveat, Circumstances, Doubt, caveat
from pyrometer.quantity import format_bytes, format_percent, format_seconds, significant

WIDE = 0.05
GROWTH_BYTES = 16 * 1024
GROWTH_TOTAL_SHARE = 0.05


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the checks need beside the measurement."""

    trend: float = 0.0
    compile_after_warmup_s: float = 0.0
    nan_output: bool = False
    num_output_shapes: int = 1
    circumstances: Circumstances = field(default_factory=Circumstances)


Check = Callable[[Measurement, Evidence], "Caveat | None"]


def caveats_of(measurement: Measurement, evidence: Evidence) -> list[Caveat]:
    """Every caveat that applies: the program's own first, then the machine's."""
    found = [one for check in CHECKS if (one := check(measurement, evidence)) is not None]
    return [*found, *machine_caveats(measurement.conditions)]


def _more_time(m: Measurement, evidence: Evidence, factor: float) -> str:
    if evidence.circumstances.observed:
        return f"let the script run about {math.ceil(factor)} times as many steps"
    budget = max(evidence.circumstances.budget_s, m.elapsed_s) * factor
    rounded = math.ceil(budget) if budget > 2 else round(budget, 1)
    return evidence.circumstances.again(f"--budget {rounded}s", f"budget_s={rounded}")


def _failed(m: Measurement, _evidence: Evidence) -> Caveat | None:
    if m.failure is None:
        return None
    return caveat(
        Doubt.FAILED,
        f"{m.failure}; the figures are of the steps before",
        "mend the program, then measure again",
    )


def _interrupted(m: Measurement, _evidence: Evidence) -> Caveat | None:
    if not m.interrupted:
        return None
    return caveat(
        Doubt.INTERRUPTED,
        f"interrupted after {m.num_samples * m.steps_per_sample + m.warmup_steps} steps",
        "let it run to the end for a narrower interval",
    )


def _first_call_only(m: Measurement, evidence: Evidence) -> Caveat | None:
    if m.complete or m.interrupted or m.failure:
        return None
    need = m.first_call_s * 10
    return caveat(
        Doubt.FIRST_CALL_ONLY,
        f"one step took {format_seconds(m.first_call_s)}, longer than the budget allows; only the first call was timed",
        evidence.circumstances.again(f"--budget {math.ceil(need)}s", f"budget_s={math.ceil(need)}"),
    )


def _not_steady(m: Measurement, evidence: Evidence) -> Caveat | None:
    if m.steady or not m.complete or evidence.trend:
        return None
    return caveat(
        Doubt.NOT_STEADY,
        f"no steady state within {m.warmup_steps + m.num_samples} steps: the times were still falling",
        _more_time(m, evidence, 4),
    )


def _drifting(_m: Measurement, evidence: Evidence) -> Caveat | None:
    if not evidence.trend:
        return None
    direction = "slower" if evidence.trend > 0 else "faster"
    return caveat(
        Doubt.DRIFTING,
        f"the steps grew {format_percent(abs(evidence.trend))} {direction} while they were measured",
        "look for state that grows from step to step; a paired comparison (--vs) is immune to the machine's own drift",
    )


def _few_samples(m: Measurement, evidence: Evidence) -> Caveat | None:
    if not m.complete or m.effective_num_samples >= 20:
        return None
    factor = max(2.0, 30 / max(m.effective_num_samples, 1))
    return caveat(
        Doubt.FEW_SAMPLES,
        f"{m.num_samples} steady {'sample' if m.num_samples == 1 else 'samples'} worth {significant(m.effective_num_samples, 2)} independent ones",
        _more_time(m, evidence, factor),
    )


def _wide(m: Measurement, evidence: Evidence) -> Caveat | None:
    if m.complete and None in {m.quantiles[0].low_s, m.quantiles[0].high_s} and m.effective_num_samples >= 20:
        return caveat(
            Doubt.WIDE_INTERVAL,
            "the samples are too much alike to bound the median: fast and slow ones come in long runs",
            _more_time(m, evidence, 8),
        )
    half = (m.ci_high_s - m.ci_low_s) / 2 / m.median_s
    if not m.complete or half <= WIDE or m.effective_num_samples < 20:
        return None
    return caveat(
        Doubt.WIDE_INTERVAL,
        f"the median is known to ±{format_percent(half, 2)} only",
        _more_time(m, evidence, min((half / WIDE) ** 2, 60)),
    )


def _tail(m: Measurement, evidence: Evidence) -> Caveat | None:
    tail = m.quantiles[-1]
    if not m.complete or tail.high_s is not None or m.effective_num_samples < 20:
        return None
    need = math.log((1 - m.confidence) / 2) / math.log(tail.quantile)
    return caveat(
        Doubt.TAIL_UNBOUNDED,
        f"P{round(tail.quantile * 100)} has no upper bound yet: that takes about {round(need)} independent samples",
        _more_time(m, evidence, max(need / m.effective_num_samples, 1.5)),
    )


def _autocorrelated(m: Measurement, _evidence: Evidence) -> Caveat | None:
    if m.autocorrelation_time <= 5 or m.num_samples < 50:
        return None
    return caveat(
        Doubt.AUTOCORRELATED,
        f"neighbouring samples are alike (autocorrelation time {significant(m.autocorrelation_time, 2)} samples): "
        f"{m.num_samples} count as {round(m.effective_num_samples)}",
        "the intervals allow for it; compare variants with --vs, never by two separate measurements",
    )


def _batched(m: Measurement, _evidence: Evidence) -> Caveat | None:
    if m.steps_per_sample == 1:
        return None
    return caveat(
        Doubt.BATCHED,
        f"a step is so short that {m.steps_per_sample} are timed together",
        "read P90 to P99 as quantiles of these means, not of single steps",
    )


def _compiled_late(_m: Measurement, evidence: Evidence) -> Caveat | None:
    if evidence.compile_after_warmup_s <= 0.01:
        return None
    return caveat(
        Doubt.COMPILED_WHILE_STEADY,
        f"torch.compile worked for {format_seconds(evidence.compile_after_warmup_s)} after the warm-up",
        "look for inputs whose shape or dtype changes; TORCH_LOGS=recompiles names the guard",
    )


def _nan(_m: Measurement, evidence: Evidence) -> Caveat | None:
    if not evidence.nan_output:
        return None
    return caveat(
        Doubt.NAN_OUTPUT,
        "the first output contains NaN",
        "speed measured on NaN can differ from speed on numbers; check the model or its inputs",
    )


def _shapes(_m: Measurement, evidence: Evidence) -> Caveat | None:
    if evidence.num_output_shapes <= 1:
        return None
    return caveat(
        Doubt.SHAPE_VARIES,
        f"the outputs had {evidence.num_output_shapes} different shapes, so the steps do different amounts of work",
        "read the spread as the workload's own; fix the inputs to measure one shape",
    )


def _memory_grows(m: Measurement, _evidence: Evidence) -> Caveat | None:
    growth = m.memory.growth_bytes_per_step if m.memory else None
    if m.memory is None or growth is None or growth < GROWTH_BYTES:
        return None
    total = m.memory.series_bytes[-1] - m.memory.start_bytes
    if total < GROWTH_TOTAL_SHARE * m.memory.start_bytes:
        return None
    return caveat(
        Doubt.MEMORY_GROWS,
        f"memory grew by {format_bytes(growth)} per step",
        "look for outputs, losses or tensors that are kept in a list",
    )


CHECKS: tuple[Check, ...] = (
    _failed,
    _interrupted,
    _first_call_only,
    _not_steady,
    _drifting,
    _few_samples,
    _wide,
    _tail,
    _compiled_late,
    _memory_grows,
    _nan,
    _shapes,
    _autocorrelated,
    _batched,
)
