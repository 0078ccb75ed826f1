"""Where the host's time goes, to the line and to what it does there."""

from __future__ import annotations

from pathlib import Path

from pyrometer.errors import PyrometerError
from pyrometer.evidence.busiest import busiest_line
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.host.build import build_profile
from pyrometer.host.profile import HostProfile
from pyrometer.host.samples import HostSamples
from pyrometer.host.sampling import sample_host
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import from_json
from pyrometer.trace.reporting.verdict import judge
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.1
"""Share of the check's budget that sampling may take on top."""

LONGEST_S = 2.0


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Sample some steps with nothing else beside."""
    options.progress(0.0, "looking where the host is")
    try:
        samples = sample_host(work, budget_s=budget_s(options))
    except PyrometerError as error:
        return seen.having(f"where the host's time goes was not sampled: {error}")
    if not samples.stacks:
        return seen.having(*samples.notes)
    host = build_profile(samples)
    if seen.evidence.trace is None:
        return seen.having(host=host)
    verdict = judge(seen.evidence.trace, busiest=busiest_line(host))
    return seen.having(host=host, trace_verdict=verdict)


def budget_s(options: ObserveOptions) -> Seconds:
    """How long sampling may take."""
    return min(LONGEST_S, BUDGET_SHARE * options.budget_s)


def host_of_script(file: Path, garbage_share: Ratio | None = None) -> tuple[HostProfile | None, list[str]]:
    """What was seen in a script, and why nothing was.

    Args:
        file: that was written inside of it.
        garbage_share: of its steps without an observer, in which Python collected garbage; more is none of the script's.
    """
    failure = Path(f"{file}.failure")
    if failure.exists():
        return None, [f"where the host's time goes was not sampled: {failure.read_text(encoding='utf-8')}"]
    if not file.exists():
        return None, []
    samples = from_json(HostSamples, file.read_bytes())
    return (build_profile(samples, garbage_share), []) if samples.stacks else (None, list(samples.notes))
