"""`limit_peak_memory` and `no_leak`: what a step takes, and whether it stays."""

from __future__ import annotations

from pyrometer.errors import InputError
from pyrometer.guard.pytest.program import place_of
from pyrometer.guard.pytest.result import ContractOutcome, ContractResult
from pyrometer.memory.leaks.cohorts import MIN_STEPS
from pyrometer.memory.leaks.watch import watch_memory
from pyrometer.memory.profile import UNDECIDED_GROWTH, LeakReport, LeakSite
from pyrometer.memory.profiling import profile_memory
from pyrometer.place import place_text
from pyrometer.quantity import counted, format_bytes
from pyrometer.text import one_line
from pyrometer.workload.workload import Workload

MOST_NAMED = 5


def keeps_peak(work: Workload, limit_bytes: float) -> ContractResult:
    """Record every tensor of a few steps.

    Raises:
        InputError: a limit that is not positive.
        UserProgramError: a step raised.
    """
    if limit_bytes <= 0:
        raise InputError(f"limit_peak_memory: got {limit_bytes} bytes; a limit is positive, such as '2GiB'")
    profile = profile_memory(work, predict=False, scaling=False)
    if profile.interrupted:
        raise KeyboardInterrupt
    parts = sorted(profile.ledger_bytes.items(), key=lambda part: -part[1])
    ledger = ", ".join(f"{name} {format_bytes(held)}" for name, held in parts if held)
    lines = [f"{format_bytes(one.bytes)} {one.site}" for one in profile.at_peak[:MOST_NAMED]]
    return ContractResult(
        contract="limit_peak_memory",
        workload=work.name,
        outcome="kept" if profile.peak_bytes <= limit_bytes else "broken",
        promised=f"tensors take at most {format_bytes(limit_bytes)} at any instant",
        measured=f"{format_bytes(profile.peak_bytes)} at the peak ({profile.source})",
        limit=limit_bytes,
        value=profile.peak_bytes,
        unit="bytes",
        where=[*place_of(work), ledger, *lines],
        advice="print(pm.profile_memory(work)) says what would lower the peak, and by how much",
    )


def keeps_no_leak(work: Workload, steps: int) -> ContractResult:
    """Watch some steps for memory that stays.

    Raises:
        InputError: too few steps.
        UserProgramError: a step raised.
    """
    if steps < MIN_STEPS:
        raise InputError(
            f"steps: got {steps}; at least {MIN_STEPS} tell a leak from a warm-up, 60 are a good choice"
        )
    report = watch_memory(work, steps=steps)
    outcome: ContractOutcome = "kept"
    if report.unbounded:
        outcome = "broken"
    elif report.verdict in {"undecided", UNDECIDED_GROWTH}:
        outcome = "undecided"
    low, high = report.ci if len(report.ci) == 2 else (None, None)
    ends = "" if low is None else f" ({format_bytes(low)} to {format_bytes(high)})"
    return ContractResult(
        contract="no_leak",
        workload=work.name,
        outcome=outcome,
        promised=f"memory does not grow without end over {counted(steps, 'step')}",
        measured=f"{format_bytes(report.bytes_per_step)} per step{ends}: {report.verdict}",
        limit=0.0,
        value=report.bytes_per_step,
        low=low,
        high=high,
        unit="bytes per step",
        reason=report.sentence if outcome != "kept" else None,
        where=[_site_text(site) for site in report.sites[:MOST_NAMED]],
        advice=_next_to_do(report, steps) if outcome != "kept" else None,
    )


def _next_to_do(report: LeakReport, steps: int) -> str:
    fix = next((site.fix for site in report.sites if site.fix), None)
    if fix is not None:
        return f"write {one_line(fix.removeprefix('# for example: '), 200)}"
    return f"pass steps={steps * 4}: what has an end shows it then"


def _site_text(site: LeakSite) -> str:
    made = f" from {place_text(site.file, site.line)}" if site.file else ""
    held = f", held by {site.holder}" if site.holder else ""
    return f"{format_bytes(site.bytes_per_step)} per step{made}{held}"
