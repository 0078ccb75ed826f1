"""From step times to a `Measurement`: pure, so that a live session and an observed script end in the same record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pyrometer.bench.autocorrelation import Floats, autocorrelation_time
from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime
from pyrometer.bench.quality import Caveat, Circumstances
from pyrometer.bench.quantiles import QUANTILES, estimate_quantile, mean_interval
from pyrometer.bench.reservations import CaveatFacts, caveats_of
from pyrometer.bench.warmup import drift, steady_start
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Seconds
from pyrometer.series import thinned

MAX_STORED_SAMPLES = 2000
MAX_STORED_WARMUP = 200


@dataclass(kw_only=True)
class Observation:
    """Everything that was seen of one workload; what `summarise` turns into a `Measurement`.

    Attributes:
        times_s: sample times after the first call, in order.
        single_times_s: steps that were timed one by one before several made a sample; warm-up.
        doubts: why the time of a step is not that of its work.
    """

    name: str
    config: str = "as written"
    clock: str = "wall"
    unit: str = "steps"
    units_per_step: float = 1.0
    padding_ratio: float | None = None
    deadline_s: Seconds | None = None
    first_call_s: Seconds = 0.0
    times_s: Sequence[Seconds] = ()
    single_times_s: Sequence[Seconds] = ()
    steps_per_sample: int = 1
    host_s: Seconds | None = None
    latency_s: Seconds | None = None
    cpu_s: Seconds | None = None
    compile_s: Seconds | None = None
    compile_after_warmup_s: Seconds = 0.0
    timer_overhead_s: Seconds = 0.0
    memory: MemoryUse | None = None
    phases: Sequence[PhaseTime] = ()
    conditions: Conditions | None = None
    elapsed_s: Seconds = 0.0
    interrupted: bool = False
    failure: str | None = None
    nan_output: bool = False
    num_output_shapes: int = 1
    doubts: Sequence[Caveat] = ()
    circumstances: Circumstances = field(default_factory=Circumstances)


def summarise(seen: Observation, confidence: float) -> Measurement:
    """Split warm-up from steady state and compute every statistic of the steady part."""
    times = np.asarray(seen.times_s, dtype=np.float64)
    start = steady_start(times)
    trend = drift(times[start:]) if start is not None else 0.0
    steady = _steady_part(times, start, seen.first_call_s)
    num_early = len(times) - len(steady) if len(times) else 0
    warmup = [seen.first_call_s, *seen.single_times_s, *times[:num_early].tolist()]
    warmup_steps = 1 + len(seen.single_times_s) + num_early * seen.steps_per_sample
    quantiles = [estimate_quantile(steady, q, confidence) for q in QUANTILES]
    mean_low, mean_high = mean_interval(steady, confidence)
    units = seen.units_per_step
    draft = Measurement(
        name=seen.name,
        config=seen.config,
        clock=seen.clock,
        median_s=quantiles[0].value_s,
        mean_s=float(steady.mean()),
        min_s=float(steady.min()),
        max_s=float(steady.max()),
        stdev_s=float(steady.std(ddof=1)) if len(steady) > 1 else 0.0,
        iqr_s=float(np.subtract(*np.quantile(steady, [0.75, 0.25]))),
        p50_s=quantiles[0].value_s,
        p90_s=quantiles[1].value_s,
        p95_s=quantiles[2].value_s,
        p99_s=quantiles[3].value_s,
        ci_low_s=quantiles[0].low_s if quantiles[0].low_s is not None else float(steady.min()),
        ci_high_s=quantiles[0].high_s if quantiles[0].high_s is not None else float(steady.max()),
        confidence=confidence,
        quantiles=quantiles,
        num_samples=len(steady) if len(times) else 1,
        effective_num_samples=len(steady) / autocorrelation_time(steady),
        autocorrelation_time=autocorrelation_time(steady),
        steps_per_sample=seen.steps_per_sample,
        first_call_s=seen.first_call_s,
        compile_s=seen.compile_s,
        # A lone first call is all there is: it stands in for the samples, and is no warm-up beside.
        warmup_steps=warmup_steps if len(times) else 0,
        warmup_s=warmup[:MAX_STORED_WARMUP],
        steady=start is not None and trend == 0.0,
        jitter=quantiles[-1].value_s / float(steady.mean()),
        throughput=units / float(steady.mean()),
        throughput_low=units / mean_high,
        # No mean lies below the smallest sample, whatever a normal interval of few samples says.
        throughput_high=units / max(mean_low, float(steady.min())),
        unit=seen.unit,
        units_per_step=units,
        padding_ratio=seen.padding_ratio,
        deadline_s=seen.deadline_s,
        deadline_missed_share=None if seen.deadline_s is None else float((steady > seen.deadline_s).mean()),
        host_s=seen.host_s,
        latency_s=seen.latency_s,
        cpu_s=seen.cpu_s,
        timer_overhead_s=seen.timer_overhead_s,
        peak_bytes=seen.memory.peak_bytes if seen.memory else None,
        memory=seen.memory,
        phases=list(seen.phases),
        conditions=seen.conditions,
        samples_s=steady[thinned(len(steady), MAX_STORED_SAMPLES)].tolist(),
        elapsed_s=seen.elapsed_s,
        complete=not (seen.interrupted or seen.failure) and len(times) > 0,
        interrupted=seen.interrupted,
        failure=seen.failure,
    )
    return _with_caveats(draft, seen, trend)


def _steady_part(times: Floats, start: int | None, first_call_s: Seconds) -> Floats:
    """The steady samples; without a steady state the second half, without any sample the first call."""
    if len(times) == 0:
        return np.array([first_call_s])
    return times[start if start is not None else len(times) // 2 :]


def _with_caveats(draft: Measurement, seen: Observation, trend: float) -> Measurement:
    facts = CaveatFacts(
        trend=trend,
        compile_after_warmup_s=seen.compile_after_warmup_s,
        nan_output=seen.nan_output,
        num_output_shapes=seen.num_output_shapes,
        circumstances=seen.circumstances,
    )
    return msgspec.structs.replace(draft, warnings=[*seen.doubts, *caveats_of(draft, facts)])
