"""Which caveats a measurement earns: one small check per doubt, in an explicit list."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrometer.bench.machine import machine_caveats
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.quality import Caveat, CaveatCode, Circumstances, caveat
from pyrometer.quantity import Seconds, format_bytes, format_percent, format_seconds, significant

WIDE = 0.05
GROWTH_BYTES = 16 * 1024
GROWTH_TOTAL_SHARE = 0.05

STEPS, MARGIN_S = 30, 5
"""What is left for steps after a compilation."""


@dataclass(frozen=True, kw_only=True)
class CaveatFacts:
    """What the checks need beside the measurement."""

    trend: float = 0.0
    compile_after_warmup_s: float = 0.0
    nan_output: bool = False
    num_output_shapes: int = 1
    circumstances: Circumstances = field(default_factory=Circumstances)


Check = Callable[[Measurement, CaveatFacts], "Caveat | None"]


def caveats_of(measurement: Measurement, facts: CaveatFacts) -> list[Caveat]:
    """Every caveat that applies: the program's own first, then the machine's."""
    caveats = [one for check in CHECKS if (one := check(measurement, facts)) is not None]
    return [*caveats, *machine_caveats(measurement.conditions)]


def _more_time(code: CaveatCode, message: str, m: Measurement, facts: CaveatFacts, factor: float) -> Caveat:
    """A caveat that measuring so many times as long would lift."""
    if facts.circumstances.observed:
        hint = f"let the script run about {math.ceil(factor)} times as many steps"
        return caveat(code, message, hint, m.elapsed_s * factor)
    budget_s = max(facts.circumstances.budget_s, m.elapsed_s) * factor
    return _with_budget(code, message, facts, math.ceil(budget_s) if budget_s > 2 else round(budget_s, 1))


def _with_budget(code: CaveatCode, message: str, facts: CaveatFacts, budget_s: Seconds) -> Caveat:
    """A caveat that this budget would lift."""
    hint = facts.circumstances.again(f"--budget {budget_s}s", f"budget_s={budget_s}")
    return caveat(code, message, hint, budget_s)


def _failed(m: Measurement, _facts: CaveatFacts) -> Caveat | None:
    if m.failure is None:
        return None
    return caveat(
        CaveatCode.FAILED,
        f"{m.failure}; the figures cover the steps before it",
        "fix the program, then measure again",
    )


def _interrupted(m: Measurement, _facts: CaveatFacts) -> Caveat | None:
    if not m.interrupted:
        return None
    return caveat(
        CaveatCode.INTERRUPTED,
        f"interrupted after {m.num_samples * m.steps_per_sample + m.warmup_steps} steps",
        "let it run to the end for a narrower interval",
    )


def _first_call_only(m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if m.complete or m.interrupted or m.failure:
        return None
    if m.compile_s is None or m.compile_s < m.first_call_s / 2:
        message = f"one step took {format_seconds(m.first_call_s)}, longer than the budget allows; only the first call was timed"
        return _with_budget(CaveatCode.FIRST_CALL_ONLY, message, facts, math.ceil(m.first_call_s * 10))
    need_s = math.ceil(m.compile_s + STEPS * (m.first_call_s - m.compile_s) + MARGIN_S)
    message = f"the first call compiled for {format_seconds(m.compile_s)}, longer than the budget; no step was timed"
    return _with_budget(CaveatCode.FIRST_CALL_ONLY, message, facts, need_s)


def _not_steady(m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if m.steady or not m.complete or facts.trend:
        return None
    return _more_time(
        CaveatCode.NOT_STEADY,
        f"no steady state within {m.warmup_steps + m.num_samples} steps: the times were still falling",
        m,
        facts,
        4,
    )


def _drifting(_m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if not facts.trend:
        return None
    direction = "slower" if facts.trend > 0 else "faster"
    return caveat(
        CaveatCode.DRIFTING,
        f"the steps grew {format_percent(abs(facts.trend))} {direction} while they were measured",
        "look for state that grows from step to step; a paired comparison (--vs) is immune to the machine's own drift",
    )


def _few_samples(m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if not m.complete or m.effective_num_samples >= 20:
        return None
    factor = max(2.0, 30 / max(m.effective_num_samples, 1))
    return _more_time(
        CaveatCode.FEW_SAMPLES,
        f"{m.num_samples} steady {'sample' if m.num_samples == 1 else 'samples'} worth {significant(m.effective_num_samples, 2)} independent ones",
        m,
        facts,
        factor,
    )


def _wide(m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if m.complete and None in {m.quantiles[0].low_s, m.quantiles[0].high_s} and m.effective_num_samples >= 20:
        return _more_time(
            CaveatCode.WIDE_INTERVAL,
            "the median has no interval: fast and slow samples come in long runs",
            m,
            facts,
            8,
        )
    half = (m.ci_high_s - m.ci_low_s) / 2 / m.median_s
    if not m.complete or half <= WIDE or m.effective_num_samples < 20:
        return None
    return _more_time(
        CaveatCode.WIDE_INTERVAL,
        f"the median is known to ±{format_percent(half, 2)} only",
        m,
        facts,
        min((half / WIDE) ** 2, 60),
    )


def _tail(m: Measurement, facts: CaveatFacts) -> Caveat | None:
    tail = m.quantiles[-1]
    if not m.complete or tail.high_s is not None or m.effective_num_samples < 20:
        return None
    need = math.log((1 - m.confidence) / 2) / math.log(tail.quantile)
    return _more_time(
        CaveatCode.TAIL_UNBOUNDED,
        f"P{round(tail.quantile * 100)} has no upper bound yet: that takes about {round(need)} independent samples",
        m,
        facts,
        max(need / m.effective_num_samples, 1.5),
    )


def _autocorrelated(m: Measurement, _facts: CaveatFacts) -> Caveat | None:
    if m.autocorrelation_time <= 5 or m.num_samples < 50:
        return None
    return caveat(
        CaveatCode.AUTOCORRELATED,
        f"neighbouring samples are correlated (autocorrelation time {significant(m.autocorrelation_time, 2)} samples): "
        f"{m.num_samples} count as {round(m.effective_num_samples)}",
        "the intervals account for it; compare variants with --vs, not with two separate measurements",
    )


def _batched(m: Measurement, _facts: CaveatFacts) -> Caveat | None:
    if m.steps_per_sample == 1:
        return None
    return caveat(
        CaveatCode.BATCHED,
        f"steps are so short that {m.steps_per_sample} are timed together",
        "read P90 to P99 as quantiles of these means, not of single steps",
    )


def _compiled_late(_m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if facts.compile_after_warmup_s <= 0.01:
        return None
    return caveat(
        CaveatCode.COMPILED_WHILE_STEADY,
        f"torch.compile compiled for {format_seconds(facts.compile_after_warmup_s)} after the warm-up",
        "look for inputs whose shape or dtype changes; TORCH_LOGS=recompiles names the guard",
    )


def _nan(_m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if not facts.nan_output:
        return None
    return caveat(
        CaveatCode.NAN_OUTPUT,
        "the first output contains NaN",
        "NaN can run at another speed than ordinary numbers; check the model or its inputs",
    )


def _shapes(_m: Measurement, facts: CaveatFacts) -> Caveat | None:
    if facts.num_output_shapes <= 1:
        return None
    return caveat(
        CaveatCode.SHAPE_VARIES,
        f"the outputs had {facts.num_output_shapes} different shapes, so the steps do different amounts of work",
        "the spread is the workload's own; use inputs of one shape to measure that shape",
    )


def _memory_grows(m: Measurement, _facts: CaveatFacts) -> Caveat | None:
    growth = m.memory.growth_bytes_per_step if m.memory else None
    if m.memory is None or growth is None or growth < GROWTH_BYTES:
        return None
    # What rose once, while all was set up, is none: the rate counts, over all steps.
    total = growth * (m.memory.steps[-1] - m.memory.steps[0])
    if total < GROWTH_TOTAL_SHARE * m.memory.start_bytes:
        return None
    return caveat(
        CaveatCode.MEMORY_GROWS,
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
