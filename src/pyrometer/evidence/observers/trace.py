"""Where the step goes: a few steps traced on their own, after all timing is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from pyrometer.errors import InputError, PyrometerError
from pyrometer.evidence.busiest import busiest_line
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.of_trace import parts_of_trace
from pyrometer.evidence.options import ObserveOptions
from pyrometer.hardware.peak_cache import cached_peaks
from pyrometer.hardware.peaks import Peaks
from pyrometer.hardware.record import Environment
from pyrometer.quantity import Seconds
from pyrometer.trace.capture.record import CaptureOptions
from pyrometer.trace.capture.workload import record_trace
from pyrometer.trace.reporting.job_report import report_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.trace.trace import Trace
from pyrometer.workload.workload import Workload

OPTIONS = CaptureOptions(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True)
"""All that a report shows is recorded; what that costs the host is stated beside it."""

MOST_STEPS = 5
BUDGET_SHARE = 0.2
"""Share of the check's budget that tracing may take on top."""

STEPS_BESIDE = 4
"""For each step in the trace about as many run bare, for comparison, or slowed by the profiler."""

MOST_BYTES = 60_000_000
BYTES_PER_S = 2_000_000
"""Of a trace for each second of the budget: reading and analysing it takes as long as its events are many."""

PEAKS_BUDGET_S = 2.0


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Trace as many steps as the budget allows."""
    options.progress(0.0, "tracing a few steps")
    try:
        trace = record_trace(
            work,
            steps=steps_within(options.budget_s, seen.evidence.step_s),
            warmup=0,
            options=OPTIONS,
            most_bytes=min(MOST_BYTES, int(BYTES_PER_S * options.budget_s)),
        )
    except PyrometerError as error:
        return seen.having(f"no step could be traced: {error}")
    return with_trace(seen, trace, options.peaks_folder)


def steps_within(budget_s: Seconds, step_s: Seconds | None) -> int:
    """How many steps to trace."""
    fitting = int(BUDGET_SHARE * budget_s / max((step_s or 0.0) * STEPS_BESIDE, 1e-9))
    return max(1, min(MOST_STEPS, fitting))


def with_trace(seen: Observed, trace: Trace, peaks_folder: Path | None) -> Observed:
    """With a trace, put against the peaks of this machine; of several ranks, the one that the verdict is about comes first."""
    rank = trace.ranks[0]
    peaks: Peaks | None = None
    notes: list[str] = []
    if seen.evidence.environment is not None:
        device = torch.device("cuda" if rank.activity.has_device else "cpu")
        peaks, notes = peaks_of(device, seen.evidence.environment, peaks_folder)
    drawn = replace(seen, trace=trace, peaks=peaks)
    if len(trace.ranks) > 1:
        return drawn.having(*notes, capture=trace.capture, **parts_of_trace(report_trace(trace, peaks)))
    report = report_rank(rank, peaks=peaks)
    verdict = judge(report, busiest=busiest_line(seen.evidence.host))
    return drawn.having(*notes, trace=report, trace_verdict=verdict, capture=trace.capture)


def peaks_of(
    device: torch.device, environment: Environment, folder: Path | None
) -> tuple[Peaks | None, list[str]]:
    """The measured peaks of this machine, from the store if they are there; and why there are none."""
    if folder is None:
        return None, [
            "operators are not compared with what this machine can do: its peaks are kept in a store"
        ]
    try:
        return cached_peaks(device, environment.fingerprint, folder, budget_s=PEAKS_BUDGET_S), []
    except InputError as error:
        return None, [f"operators are not compared with what this machine can do: {error}"]
