"""What a check adds to a measurement: a few steps traced on their own, after all timing is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from pyrometer.checkup.options import CheckOptions
from pyrometer.errors import InputError, PyrometerError
from pyrometer.hardware.environment import Environment
from pyrometer.hardware.peak_cache import cached_peaks
from pyrometer.hardware.peaks import Peaks
from pyrometer.quantity import Seconds
from pyrometer.trace.capture.record import CaptureOptions
from pyrometer.trace.capture.workload import record_trace
from pyrometer.trace.reporting.rank_report import report_rank
from pyrometer.trace.reporting.verdict import judge
from pyrometer.trace.trace import Trace
from pyrometer.workload.workload import Workload

OPTIONS = CaptureOptions(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True)
"""All that a report shows is recorded; what that costs the host is stated beside it."""

MOST_STEPS = 5
BUDGET_SHARE = 0.3
"""Share of the check's budget that tracing may take on top."""

STEPS_BESIDE = 4
"""For each step in the trace about as many run bare, for comparison, or slowed by the profiler."""

MOST_BYTES = 60_000_000
PEAKS_BUDGET_S = 3.0


def trace_workload(work: Workload, *, step_s: Seconds, budget_s: Seconds) -> tuple[Trace | None, list[str]]:
    """Trace as many steps as the budget allows; what prevents it is told, since the measurement stands without."""
    fitting = int(BUDGET_SHARE * budget_s / max(step_s * STEPS_BESIDE, 1e-9))
    steps = max(1, min(MOST_STEPS, fitting))
    try:
        return record_trace(work, steps=steps, warmup=1, options=OPTIONS, most_bytes=MOST_BYTES), []
    except PyrometerError as error:
        return None, [f"no step could be traced: {error}"]


def traced_fields(trace: Trace, environment: Environment, options: CheckOptions) -> dict[str, Any]:
    """What a checkup says about a trace of one process, against the peaks of this machine."""
    one = trace.ranks[0]
    device = torch.device("cuda" if one.activity.has_device else "cpu")
    peaks, why = peaks_of(device, environment, options.peaks_folder)
    if options.on_trace is not None:
        options.on_trace(trace, peaks)
    report = report_rank(one, peaks=peaks)
    return {
        "trace": report,
        "trace_verdict": judge(report),
        "capture": trace.capture,
        "notes": why,
    }


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
