"""The result of measuring one workload in one configuration."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.quality import Caveat
from pyrometer.hardware.record import Conditions
from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class QuantileEstimate(Record, frozen=True, kw_only=True):
    """A quantile of the step time with its interval."""

    quantile: Annotated[float, doc("0.5 for the median, 0.99 for P99")]
    value_s: Seconds
    low_s: Annotated[Seconds | None, doc("null where so few samples cannot bound it")]
    high_s: Seconds | None


class PhaseTime(Record, frozen=True, kw_only=True):
    """One phase of a step."""

    name: Annotated[str, doc("data, h2d, forward, backward, optimizer, rest")]
    median_s: Annotated[Seconds, doc("median over steps")]
    mean_s: Annotated[Seconds, doc("mean over steps; the means of all phases add up to the mean step")]
    share: Annotated[float, doc("mean_s over the mean step, 0 to 1; all shares add up to 1")]


class MemoryUse(Record, frozen=True, kw_only=True):
    """Memory of the process while the steps ran."""

    device: Annotated[str, doc("cpu, or the accelerator whose allocator was read")]
    source: Annotated[str, doc("how it was read: resident set size, or the allocator's counters")]
    peak_bytes: Annotated[Bytes, doc("highest value seen while the steps ran")]
    start_bytes: Annotated[Bytes, doc("value before the first step")]
    growth_bytes_per_step: Annotated[
        float | None, doc("robust slope over the steady steps; null with too few steps")
    ]
    held_bytes: Annotated[
        Bytes | None,
        doc("copies that Pyrometer holds to restore the user's state, or to run a variant; part of the peak"),
    ] = None
    steps: Annotated[list[int], doc("step numbers of the series")] = []
    series_bytes: Annotated[list[Bytes], doc("memory at these steps")] = []


class Measurement(Record, frozen=True, kw_only=True):
    """Timings of one workload in one configuration; all statistics are of the steady steps."""

    name: Annotated[str, doc("the workload")]
    config: Annotated[str, doc("the variant, in words")] = "as written"
    clock: Annotated[str, doc("wall, or device events")]

    median_s: Seconds
    mean_s: Seconds
    min_s: Seconds
    max_s: Seconds
    stdev_s: Seconds
    iqr_s: Annotated[Seconds, doc("P75 minus P25")]
    p50_s: Seconds
    p90_s: Seconds
    p95_s: Seconds
    p99_s: Seconds
    ci_low_s: Annotated[Seconds, doc("lower end of the interval of the median")]
    ci_high_s: Annotated[Seconds, doc("upper end of the interval of the median")]
    confidence: Annotated[float, doc("coverage of every interval here")]
    quantiles: Annotated[list[QuantileEstimate], doc("the quantiles above, each with its interval")]

    num_samples: Annotated[int, doc("steady samples")]
    effective_num_samples: Annotated[float, doc("num_samples over the autocorrelation time")]
    autocorrelation_time: Annotated[
        float, doc("integrated autocorrelation time, in samples; 1 when independent")
    ]
    steps_per_sample: Annotated[
        int, doc("steps timed together; above 1 the quantiles are of means of so many steps")
    ]

    first_call_s: Annotated[Seconds, doc("the very first step")]
    compile_s: Annotated[
        Seconds | None, doc("time spent in torch.compile's compilers; null when nothing compiled")
    ]
    warmup_steps: Annotated[int, doc("steps before the steady ones, the first call included")]
    warmup_s: Annotated[list[Seconds], doc("durations of the warm-up steps, at most 200")]
    steady: Annotated[bool, doc("whether a steady state was reached")]

    jitter: Annotated[float, doc("P99 over mean")]
    throughput: Annotated[float, doc("units per second: units per step over the mean step")]
    throughput_low: float
    throughput_high: float
    unit: str
    units_per_step: float
    padding_ratio: Annotated[
        float | None, doc("share of padding where the workload has a mask or lengths")
    ] = None
    deadline_s: Annotated[Seconds | None, doc("the workload's deadline")] = None
    deadline_missed_share: Annotated[float | None, doc("share of steady samples above the deadline")] = None

    host_s: Annotated[
        Seconds | None, doc("median time until the call returned on the host; devices only")
    ] = None
    latency_s: Annotated[
        Seconds | None, doc("median of single steps with a synchronisation each; devices only")
    ] = None
    cpu_s: Annotated[Seconds | None, doc("median CPU time of the process per step, all threads")] = None
    timer_overhead_s: Annotated[Seconds, doc("cost of timing one sample; subtracted")] = 0.0

    peak_bytes: Annotated[Bytes | None, doc("peak memory while the steps ran; see memory for its source")]
    memory: MemoryUse | None = None
    phases: list[PhaseTime] = []
    conditions: Annotated[Conditions | None, doc("what else the machine was doing")] = None
    samples_s: Annotated[list[Seconds], doc("steady samples in time order; thinned evenly above 2,000")] = []
    elapsed_s: Annotated[Seconds, doc("time that the whole measurement took")]
    complete: Annotated[
        bool, doc("false when it was interrupted, failed, or had no time for a second step")
    ] = True
    interrupted: Annotated[bool, doc("whether Ctrl-C ended it; what had been measured is kept")] = False
    failure: Annotated[str | None, doc("what stopped the workload, if it failed after some steps")] = None
    warnings: Annotated[list[Caveat], doc("caveats of these figures, each with a next step")] = []
