"""The answer in one plain line."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.memory.holders.roots import shown_file
from pyrometer.memory.leaks.births import MadeAt
from pyrometer.memory.leaks.cohorts import Growth
from pyrometer.memory.leaks.findings import Finding
from pyrometer.memory.profile import LeakReport, LeakSite
from pyrometer.memory.trend.verdict import SeriesVerdict
from pyrometer.quantity import Bytes, counted, format_about, format_bytes
from pyrometer.workload.whereabouts.lines import site_of

TENSORS_ONLY = (
    "operators were not followed, because compiled code would run without its compiled form: what stays was found by looking "
    "for tensors after the steps, so that lines are not known"
)
COMPILED = (
    "something was compiled in this process: where operators are watched, compiled code runs without its compiled form; "
    "compiled=True, or operators=False of MemoryWatch, leaves it as it is"
)
UNSEEN = (
    "the line of some of what stays is not known: it was found among the live tensors, and not seen being made, as what "
    "another thread, numpy, a loader's process or torch's own code makes"
)


def growing(report: LeakReport, findings: Sequence[Finding]) -> str:
    """The answer where something grows."""
    return f"{report.verdict}: {_growth(report, findings)}{_more(report)}{_end(report)}"


def at_rest(report: LeakReport, level_bytes: Bytes, unseen_bytes: Bytes) -> str:
    """The answer where no tensor grows; `unseen_bytes` is by how much the process did, where that is much."""
    level = format_bytes(level_bytes)
    if unseen_bytes:
        return (
            f"{report.verdict}: tensors are stable, but the process grew by {format_bytes(unseen_bytes)}: "
            "look for other objects, compile caches or native code"
        )
    if report.verdict == "allocator warm-up":
        return f"allocator warm-up: {level} of tensors were built in the first steps, and nothing grows since"
    return f"stable: over {counted(report.num_steps, 'step')} live tensors come back to {level}"


def undecided(report: LeakReport, missing_steps: int) -> str:
    """The answer where more steps are needed."""
    return f"undecided: {counted(report.num_steps, 'step')} are too few; {missing_steps:,} would decide"


def undecided_in_windows(report: LeakReport, missing_steps: int, watched: int) -> str:
    """The answer where more steps should have been watched."""
    return (
        f"undecided: of {counted(report.num_steps, 'step')} {watched:,} were watched, too few; {missing_steps:,} in a row would "
        f"decide: MemoryWatch(every={missing_steps}, window={missing_steps})"
    )


def unfollowed(report: LeakReport, growths: Sequence[Growth]) -> str:
    """The answer where something grew in the first steps that windows cannot follow."""
    rate = format_bytes(sum(growth.bytes_per_step for growth in growths))
    site = growths[0].site
    line = site_of(site.point) if isinstance(site, MadeAt) and site.point is not None else None
    where = f"{shown_file(line.file)}:{line.line}" if line else "some place"
    return (
        f"undecided: what {where} makes grew by {rate} per step in the first steps, and windows cannot tell whether it goes "
        f"on; MemoryWatch(every={report.num_steps}, window={report.num_steps}) would"
    )


def _growth(report: LeakReport, findings: Sequence[Finding]) -> str:
    """What stays where, of the largest finding."""
    first, site = findings[0], report.sites[0]
    where = site.holder or "memory that no Python name leads to"
    place = f" ({site.file}:{site.line})" if site.file else ""
    nodes = f"{first.nodes_per_step:.3g}"
    if first.nodes_per_step and not first.bytes_per_step:
        return f"the autograd graph behind {where}{place} grows by {nodes} nodes per step"
    rate = f"{format_bytes(site.bytes_per_step)} per step stay in"
    if (
        first.graph_rate > 0.99 * first.bytes_per_step
        and first.holder is not None
        and first.holder.expression
    ):
        by = f", which grows by {nodes} nodes per step" if first.nodes_per_step else ""
        return f"{rate} the autograd graph behind {where}{place}{by}"
    return f"{rate} {where}{place}{_graph(site)}{_pinned(first)}{_limit(first, site)}"


def _graph(site: LeakSite) -> str:
    if site.graph_bytes:
        return f", with an autograd graph of {format_bytes(site.graph_bytes)}"
    if site.nodes_per_step:
        return f", with {site.nodes_per_step:.3g} nodes of autograd graphs per step"
    if site.graph_state in {"shell", "hooked", "alive"} and site.graph_nodes:
        return f", with the {site.graph_nodes:,} nodes of an autograd graph"
    return ""


def _pinned(finding: Finding) -> str:
    """That little of what stays is needed."""
    pinned = finding.pinned
    if pinned is None or finding.graph_rate:
        return ""
    needed, held = format_bytes(pinned.needed_bytes), format_bytes(pinned.storage_bytes)
    return f", of which a {pinned.reason} needs {needed} of each {held}: keep {pinned.fix} of it"


def _limit(finding: Finding, site: LeakSite) -> str:
    """What is known of an end."""
    holder = finding.holder
    if finding.kind == "bounded" and holder is not None:
        return (
            f", a {site.container}: whether it is a leak is not decidable until it is full, "
            f"after about {_steps_to_full(finding):,.0f} more steps"
        )
    if finding.kind == "open":
        return f" ({site.container}), which {shown_file(finding.ends_at or '')} may let go: whether it is a leak is not decidable yet"
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
    return f"; out of memory after about {format_about(report.eta_steps)} steps"


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


def unseen_growth(num_bytes: Bytes, source: str) -> str:
    """A note on growth that no tensor explains."""
    return (
        f"the {source} grew by {format_bytes(num_bytes)} once warm, far more than live tensors did: "
        "other objects, compile caches or native code may stay"
    )


def nodes(per_step: float, node_bytes: Bytes) -> str:
    """A note on what the nodes of a graph take."""
    return (
        f"{per_step:.3g} nodes of autograd graphs stay per step: about {format_bytes(per_step * node_bytes)}, estimated "
        f"at {node_bytes} B per node; the steps until memory is full count them, the growth per step does not"
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
