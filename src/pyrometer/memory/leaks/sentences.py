"""The answer in one plain line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pyrometer.memory.leaks.findings import Finding
from pyrometer.memory.profile import LeakReport, LeakSite
from pyrometer.memory.trend.verdict import SeriesVerdict
from pyrometer.quantity import counted, format_bytes, significant

TENSORS_ONLY = (
    "operators were not followed, because compiled code would run without its compiled form: what stays was found by looking "
    "for tensors after the steps, so that lines are not known"
)
COMPILED = (
    "something was compiled in this process: where operators are watched, compiled code runs without its compiled form; "
    "compiled=True, or operators=False of MemoryWatch, leaves it as it is"
)
UNSEEN = (
    "some of what stays was not made by an operator in the watched thread (another thread, numpy, a loader's process): its "
    "line is not known"
)


def with_sentence(report: LeakReport, findings: Sequence[Finding], missing_steps: int | None) -> LeakReport:
    """The report with its sentence."""
    return msgspec.structs.replace(report, sentence=_sentence(report, findings, missing_steps))


def _sentence(report: LeakReport, findings: Sequence[Finding], missing_steps: int | None) -> str:
    if findings:
        return f"{report.verdict}: {_growth(report, findings)}{_more(report)}{_end(report)}"
    level = format_bytes(min(report.live_bytes[-max(1, len(report.live_bytes) // 6) :], default=0))
    if report.verdict == "undecided":
        return f"undecided: {counted(report.num_steps, 'step')} are too few; {missing_steps:,} would decide"
    if report.verdict == "allocator warm-up":
        return f"allocator warm-up: {level} of tensors were built in the first steps, and nothing grows since"
    return f"stable: over {counted(report.num_steps, 'step')} live tensors come back to {level}"


def _growth(report: LeakReport, findings: Sequence[Finding]) -> str:
    """What stays where, of the largest finding."""
    first, site = findings[0], report.sites[0]
    where = site.holder or "memory that no Python name leads to"
    place = f" ({site.file}:{site.line})" if site.file else ""
    if first.nodes_per_step and not first.bytes_per_step:
        nodes = significant(first.nodes_per_step)
        return f"the autograd graph behind {where}{place} grows by {nodes} nodes per step"
    rate = f"{format_bytes(site.bytes_per_step)} per step stay in"
    if (
        first.graph_rate > 0.99 * first.bytes_per_step
        and first.holder is not None
        and first.holder.expression
    ):
        return f"{rate} the autograd graph behind {where}{place}"
    return f"{rate} {where}{place}{_graph(site)}{_limit(first, site)}"


def _graph(site: LeakSite) -> str:
    if site.graph_bytes:
        return f", with an autograd graph of {format_bytes(site.graph_bytes)}"
    if site.graph_state in {"shell", "hooked", "alive"} and site.graph_nodes:
        return f", with the {site.graph_nodes:,} nodes of an autograd graph"
    return ""


def _limit(finding: Finding, site: LeakSite) -> str:
    """What is known of an end."""
    holder = finding.holder
    if finding.kind == "bounded" and holder is not None:
        return (
            f", a {site.container}: whether it is a leak is not decidable until it is full, "
            f"after about {_steps_to_full(finding):,.0f} more steps"
        )
    if finding.kind == "slowing":
        return ", ever more slowly: whether it ends is not decidable yet"
    return f" ({site.container}, without a bound)" if finding.kind == "cache" and site.container else ""


def _steps_to_full(finding: Finding) -> float:
    holder = finding.holder
    if holder is None or holder.maxlen is None or holder.length is None:
        return 0.0
    return (holder.maxlen - holder.length) * finding.period


def _more(report: LeakReport) -> str:
    others = report.sites[1:]
    if not others:
        return ""
    rest = sum(site.bytes_per_step for site in others)
    return f"; {format_bytes(rest)} per step in {counted(len(others), 'other place')}"


def _end(report: LeakReport) -> str:
    if report.eta_steps is None:
        return ""
    return f"; out of memory after about {float(f'{report.eta_steps:.2g}'):,.0f} steps"


def collected_garbage(bytes_per_step: float) -> str:
    """A note on cycles that the collector frees."""
    return (
        f"reference cycles: {format_bytes(bytes_per_step)} per step wait for Python's garbage collector; "
        "breaking the cycles (weakref) frees them at once"
    )


def uncollected_garbage(bytes_per_step: float) -> str:
    """A note on cycles that nobody frees."""
    return (
        f"reference cycles: {format_bytes(bytes_per_step)} per step, which gc.collect() frees; "
        "but the garbage collector is off: call gc.collect() now and then, or break the cycles (weakref)"
    )


def outside_of_tensors(series: SeriesVerdict, source: str) -> str:
    """The answer where no tensor grows, and memory does."""
    return (
        f"leak: {format_bytes(series.bytes_per_step)} per step of the {source} stay, "
        "in no tensor that Python sees: look for other objects, compile caches or native code"
    )


def windows(recorded: int, lag: int) -> str:
    """A note on what was looked at."""
    return (
        f"of {counted(recorded, 'step')} in windows, what lived on for at least {lag} steps was counted: "
        "a list that is cleared less often looks like a leak"
    )
