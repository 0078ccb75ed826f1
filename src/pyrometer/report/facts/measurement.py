"""What a `Measurement` says."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime, QuantileEstimate
from pyrometer.bench.quality import Caveat, CaveatCode, caveat
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import (
    counted,
    format_bytes,
    format_interval,
    format_rate,
    format_seconds,
    rate_scale,
    significant,
    time_unit,
)
from pyrometer.report.facts.layout import Fact, Table, percent
from pyrometer.workload import failure

KNOWN_PHASES = ("data", "h2d", "forward", "backward", "optimizer", "rest")
QUANTILE_NAMES = {0.5: "median", 0.9: "P90", 0.95: "P95", 0.99: "P99"}


def headline(measurement: Measurement) -> str:
    """The answer in one line: throughput, step time with its interval, tail, state; or where the program failed."""
    m = measurement
    if m.failure is not None:
        return f"{failure.headline(m.failure)} · {format_seconds(m.median_s)} per step before ({step_interval(m)})"
    parts = [
        format_rate(m.throughput, f"{m.unit}/s"),
        f"{format_seconds(m.median_s)} per step ({step_interval(m)})",
    ]
    if any(q.quantile == 0.99 and q.low_s is not None for q in m.quantiles):
        parts.append(f"P99 {format_seconds(m.p99_s)}")
    return " · ".join([*parts, state(m)])


def state(measurement: Measurement) -> str:
    """How far the measurement came: steady, not steady, or interrupted."""
    m = measurement
    seen = counted(m.warmup_steps + m.num_samples * m.steps_per_sample, "step")
    if m.interrupted:
        return f"interrupted after {seen}"
    if not m.complete:
        return f"incomplete after {seen}"
    warmup = counted(m.warmup_steps, "step")
    return f"steady after {warmup}" if m.steady else f"not steady after {warmup}"


def step_interval(measurement: Measurement) -> str:
    """The interval of the median, in its unit; the range of the samples where they are too few for an interval."""
    m = measurement
    scale, _ = time_unit(m.median_s)
    median = next((q for q in m.quantiles if q.quantile == 0.5), None)
    if median is not None and (median.low_s is None or median.high_s is None):
        if m.num_samples <= 1:
            return counted(m.num_samples, "sample")
        return f"{counted(m.num_samples, 'sample')}, {format_interval(m.min_s, m.max_s, scale)}"
    return format_interval(m.ci_low_s, m.ci_high_s, scale)


def subtitle(measurement: Measurement) -> str:
    """What was measured, how, and how often."""
    m = measurement
    samples = f"{counted(m.num_samples, 'sample')} ({m.effective_num_samples:,.0f} effective)"
    if m.steps_per_sample > 1:
        samples += f" of {m.steps_per_sample} steps each"
    return " · ".join([m.name, m.config, samples, f"{m.clock} clock", f"took {format_seconds(m.elapsed_s)}"])


def top_figures(measurement: Measurement) -> list[Fact]:
    """The figures that a reader looks for first, each with its interval or source."""
    m = measurement
    scale = rate_scale(m.throughput)
    bounds = format_interval(m.throughput_low, m.throughput_high, scale)
    figures = [
        Fact("Median step", format_seconds(m.median_s), _median_note(m)),
        Fact("P99", format_seconds(m.p99_s), _interval_of(m, 0.99)),
        Fact("Throughput", format_rate(m.throughput, f"{m.unit}/s"), bounds),
        Fact("First call", format_seconds(m.first_call_s), _first_call_note(m)),
    ]
    if m.peak_bytes is None:
        return figures
    return [
        *figures,
        Fact(
            f"Peak of {measured_name(m.memory) if m.memory is not None else 'memory'}",
            format_bytes(m.peak_bytes),
            m.memory.source if m.memory is not None else "",
        ),
    ]


def measured_name(measured: MemoryUse) -> str:
    """What the peak of a measurement is of.

    >>> measured_name(MemoryUse(device="cpu", source="", start_bytes=0, peak_bytes=1, growth_bytes_per_step=None))
    'the process'
    """
    return "the process" if measured.device == "cpu" else "the allocator"


def latency_table(measurement: Measurement) -> Table:
    """The quantiles of the steady step time, each with its interval."""
    m = measurement
    rows: list[tuple[str, ...]] = []
    for q in m.quantiles:
        name = QUANTILE_NAMES.get(q.quantile, f"P{q.quantile * 100:g}")
        relative = f"{significant(q.value_s / m.median_s)}×" if m.median_s > 0 else "–"
        rows.append((name, format_seconds(q.value_s), _bounds(q), relative))
    return Table(("quantile", "step time", f"{percent(m.confidence)} interval", "of median"), rows)


def spread(measurement: Measurement) -> list[Fact]:
    """Mean, extremes, spread and jitter of the steady step time, and what else was clocked."""
    m = measurement
    facts = [
        Fact("mean", format_seconds(m.mean_s)),
        Fact("min", format_seconds(m.min_s)),
        Fact("max", format_seconds(m.max_s)),
        Fact("IQR", format_seconds(m.iqr_s)),
        Fact("stdev", format_seconds(m.stdev_s)),
        Fact("jitter", f"{significant(m.jitter)}×", "P99 over mean"),
    ]
    clocked = [
        ("host", m.host_s, "until the call returned"),
        ("latency", m.latency_s, "one step, synchronised"),
    ]
    clocked.append(("CPU time", m.cpu_s, "all threads, per step"))
    return facts + [
        Fact(name, format_seconds(value), note) for name, value, note in clocked if value is not None
    ]


def deadline(measurement: Measurement) -> Fact | None:
    """The deadline and how often it was missed, where the workload has one."""
    m = measurement
    if m.deadline_s is None:
        return None
    missed = m.deadline_missed_share
    if missed is None:
        note = ""
    else:
        note = f"missed by {percent(missed)} of samples" if missed > 0 else "never missed"
    return Fact("deadline", format_seconds(m.deadline_s), note)


def cold(measurement: Measurement) -> list[Fact]:
    """First call, compilation and warm-up: what happens before the steady steps."""
    m = measurement
    facts = [Fact("first call", format_seconds(m.first_call_s), _first_call_note(m))]
    if m.compile_s is not None:
        facts.append(Fact("compile", format_seconds(m.compile_s), "inside torch.compile"))
    whole = len(m.warmup_s) == m.warmup_steps
    facts.append(
        Fact("warm-up", counted(m.warmup_steps, "step"), format_seconds(sum(m.warmup_s)) if whole else "")
    )
    facts.append(Fact("steady", "reached" if m.steady else "not reached"))
    return facts


def work(measurement: Measurement) -> list[Fact]:
    """What a step processes."""
    m = measurement
    scale = rate_scale(m.throughput)
    bounds = format_interval(m.throughput_low, m.throughput_high, scale)
    facts = [Fact("throughput", format_rate(m.throughput, f"{m.unit}/s"), bounds)]
    if m.units_per_step != 1:
        whole = float(m.units_per_step).is_integer()
        number = f"{m.units_per_step:,.0f}" if whole else significant(m.units_per_step, 4)
        facts.append(Fact("per step", f"{number} {m.unit}"))
    if m.padding_ratio is not None:
        facts.append(Fact("padding", percent(m.padding_ratio), "share of the inputs"))
    return facts


def phase_table(phases: Sequence[PhaseTime]) -> Table:
    """Phases of a step, in their order."""
    rows: list[tuple[str, ...]] = [
        (phase.name, format_seconds(phase.median_s), format_seconds(phase.mean_s), percent(phase.share))
        for phase in phases
    ]
    return Table(("phase", "median", "mean", "share"), rows)


def phase_slots(phases: Sequence[PhaseTime]) -> list[int]:
    """The place of each phase in the palette: known phases keep theirs in every report, others take what is left.

    >>> names = ("forward", "logging")
    >>> phase_slots([PhaseTime(name=name, median_s=1, mean_s=1, share=0.5) for name in names])
    [2, 6]
    """
    others = [phase.name for phase in phases if phase.name not in KNOWN_PHASES]
    places = {name: len(KNOWN_PHASES) + index % 2 for index, name in enumerate(others)}
    return [
        KNOWN_PHASES.index(phase.name) if phase.name in KNOWN_PHASES else places[phase.name]
        for phase in phases
    ]


def memory_facts(memory: MemoryUse) -> list[Fact]:
    """Peak, start and growth of memory."""
    facts = [
        Fact("peak", format_bytes(memory.peak_bytes), f"{memory.device}, {memory.source}"),
        Fact(
            "before",
            format_bytes(memory.start_bytes),
            f"{_signed_bytes(memory.peak_bytes - memory.start_bytes)} to the peak",
        ),
    ]
    if memory.growth_bytes_per_step is not None:
        facts.append(Fact("growth", f"{_signed_bytes(memory.growth_bytes_per_step)} per step"))
    if memory.held_bytes:
        facts.append(Fact("held by us", format_bytes(memory.held_bytes), "copies that restore your state"))
    return facts


def mending(measurement: Measurement) -> Caveat | None:
    """What ended the program before its time, and the first thing to do about it."""
    if measurement.failure is None:
        return None
    said = caveat(
        CaveatCode.FAILED,
        f"{measurement.failure}; the figures cover the steps before it",
        "fix the program, then measure again",
    )
    return next(
        (warning for warning in measurement.warnings if warning.code == CaveatCode.FAILED.value), said
    )


def other_caveats(measurement: Measurement) -> list[Caveat]:
    """The reservations without the one that `mending` tells."""
    return [warning for warning in measurement.warnings if warning.code != CaveatCode.FAILED.value]


def trust(measurement: Measurement) -> str:
    """What a measurement without caveats rests on."""
    m = measurement
    seen = [f"{counted(m.num_samples, 'sample')}, {m.effective_num_samples:,.0f} of them independent"]
    if m.steady:
        seen.append(f"a steady state after {counted(m.warmup_steps, 'step')}")
    if m.conditions is not None:
        seen += [fact.line for fact in conditions_facts(m.conditions)]
    lead = "Nothing limits the trust in these figures" if is_sound(m) else "These figures are preliminary"
    return f"{lead}: {', '.join(seen)}."


def is_sound(measurement: Measurement) -> bool:
    """Whether the record itself says that it may be relied on."""
    m = measurement
    return m.steady and m.complete and m.failure is None and not m.warnings


def conditions_facts(conditions: Conditions) -> list[Fact]:
    """What else the machine was doing, as far as the platform says; each value reads on its own."""
    c = conditions
    facts = []
    if c.competing_load is not None:
        others = f"{significant(c.competing_load, 2)} of {counted(c.logical_cpus, 'CPU')}"
        facts.append(Fact("competing load", f"other programs on {others}"))
    if c.steal_share:
        facts.append(Fact("steal", f"{percent(c.steal_share)} taken by the hypervisor"))
    if c.throttled is not None:
        facts.append(Fact("throttling", "clocks were throttled" if c.throttled else "no throttling"))
    if c.gpu_temperature_c is not None:
        facts.append(Fact("GPU temperature", f"GPU at {c.gpu_temperature_c:.0f} °C"))
    if c.other_gpu_processes:
        facts.append(Fact("GPU sharing", f"{c.other_gpu_processes} other processes on the GPU"))
    return facts


def _median_note(m: Measurement) -> str:
    interval = step_interval(m)
    return interval if "," in interval else f"{interval}, {percent(m.confidence)} interval"


def _first_call_note(m: Measurement) -> str:
    return f"{significant(m.first_call_s / m.median_s)}× the median step" if m.median_s > 0 else ""


def _interval_of(m: Measurement, quantile: float) -> str:
    return next((_bounds(q) for q in m.quantiles if q.quantile == quantile), "")


def _bounds(estimate: QuantileEstimate) -> str:
    low, high = estimate.low_s, estimate.high_s
    if low is not None and high is not None:
        return format_interval(low, high, time_unit(estimate.value_s)[0])
    if low is None and high is None:
        return "too few samples"
    return f"≥ {format_seconds(low)}" if high is None else f"≤ {format_seconds(high)}"


def _signed_bytes(value: float) -> str:
    return f"+{format_bytes(value)}" if value > 0 else format_bytes(value)
