"""The answer to a trace in one sentence: what bounds it, what takes most of that, and what could be won."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from pyrometer.place import Place
from pyrometer.quantity import Ratio, counted, format_percent, format_seconds, significant
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.records.gains import MOSTLY, Bound, Bounds, Resource
from pyrometer.trace.records.rank import RankReport, TraceVerdict
from pyrometer.trace.reporting.totals import LineTotal

PARTS: dict[Bound, tuple[str, ...]] = {
    "compute": ("compute",),
    "communication": ("exposed_comm",),
    "data": ("data",),
    "operators": ("runtime", "host", "sync"),
    "python": ("other",),
}
"""The parts of the breakdown that are told of a resource; of all others what the time would be without them is told."""

DOMINANT = 0.3
"""Of the span, from which on one operator or function is named as what takes most of it."""

EXPOSED = 0.1
"""Of the span, from which on communication that nothing hides is told."""

NOTHING_HIDDEN = 0.001
"""Of communication, below which none of it is hidden."""

REMOVABLE = frozenset({"data", "copy", "collective", "launch", "sync"})
"""Gains from what need not be there at all; of operators and lines only a supposed speed-up is known."""

WORTH_SAYING = 0.95
"""A predicted ratio below this is told in the sentence itself."""

WORTH_A_WORD = 0.99
"""Of a balanced run, what a resource must at least bring to be named."""

SENTENCES: dict[Bound, str] = {
    "compute": "compute-bound: kernels run {share} of the time",
    "communication": "communication-bound: {share} of the time goes to communication that nothing hides",
    "copies": "copy-bound: {share} of the time goes to copies and fills that nothing hides",
    "synchronisation": "synchronisation-bound: {share} of the time goes because the host waits for the device",
    "data": "data-bound: {share} of the time the step waits for its data",
    "host": "host-bound: {share} of the traced span the device waits for the host",
    "operators": "operators take {share} of the time",
    "python": "Python-bound: {share} of the time runs Python outside of operators",
    "unrecorded": "nothing recorded explains {share} of the time",
    "balanced": "balanced: nothing alone holds it up",
}

WITHOUT: dict[Resource, str] = {
    "compute": "its kernels",
    "communication": "communication",
    "copies": "copies",
    "synchronisation": "waiting for the device",
    "data": "data loading",
    "host": "the host's work",
    "operators": "operators",
    "python": "Python",
    "unrecorded": "what was not recorded",
}

WHOLE: dict[str, Bound] = {"data": "data", "collective": "communication"}
"""Gains that are all of a resource: where it bounds, its share has said as much."""

CAUSE: dict[Bound, str] = {"copies": "copy", "synchronisation": "sync", "host": "launch"}
"""The kind of gain that is of what bounds: where there is one, it is told, and no other."""

HOST_WORK = {
    "host_op": "operators",
    "python": "Python",
    "launch": "launches",
    "runtime": "runtime calls",
    "untraced": "what was not recorded",
}
"""What of the critical path is the host's own work."""

NOTHING = "nothing to time was recorded: neither operators nor device work of any length"


class Busiest(NamedTuple):
    """The line on which the host spends most of its own time, where steps were sampled without the profiler."""

    where: Place
    share: Ratio


def judge(
    report: RankReport, *, data_share: Ratio | None = None, busiest: Busiest | None = None
) -> TraceVerdict:
    """Say what bounds one rank, and what takes most of it.

    Args:
        report: of the rank.
        data_share: of a step, on waiting for its data, where that was measured without the profiler. It then stands for the
            traced share, which the profiler distorts; the rest of the step is divided as it was traced.
        busiest: a line, where the host was sampled; the trace knows but where functions begin.
    """
    if not report.span_ns:
        return TraceVerdict(rank=report.rank, bound="unrecorded", share=0.0, sentence=NOTHING)
    found = report.bounds if data_share is None else report.bounds.having_data(data_share)
    bound, ratio = found.bound, found.free_ratio
    share = _share(report, found, data_share)
    promises = [
        SENTENCES[bound].format(share=format_percent(share)),
        _both(found) if bound == "balanced" else _most(report, bound, busiest),
        _in_the_open(report),
        _update(report),
    ]
    if bound not in {"unrecorded", "balanced"}:
        promises.append(_promise(report, bound, data_share))
    return TraceVerdict(
        rank=report.rank,
        bound=bound,
        share=share,
        ratio=ratio,
        sentence="; ".join(filter(None, promises)),
        recoverable=report.recoverable[:3],
    )


def _share(report: RankReport, found: Bounds, data_share: Ratio | None) -> Ratio:
    """What the bound takes of the time."""
    parts = report.breakdown_ns
    if found.bound == "unrecorded":
        return found.unexplained if found.unexplained > MOSTLY else parts.idle / parts.total_ns
    if found.bound == "data" and data_share is not None:
        return data_share
    if found.bound not in PARTS:
        return 1 - found.free_ratio
    taken: int = sum(getattr(parts, name) for name in PARTS[found.bound])
    rest = parts.total_ns - parts.data
    return taken / parts.total_ns if data_share is None or not rest else (1 - data_share) * taken / rest


def _both(found: Bounds) -> str:
    """What the two largest resources would bring, were they free."""
    largest = [
        f"without {WITHOUT[free.resource]} {significant(1 / free.free_ratio)}× faster"
        for free in found.resources[:2]
        if free.free_ratio < WORTH_A_WORD
    ]
    return " and ".join(largest)


def _most(report: RankReport, bound: Bound, busiest: Busiest | None) -> str:
    """What takes most of the time that bounds, where one function or operator does; empty for all else."""
    if bound == "python" and busiest is not None and busiest.share >= DOMINANT:
        return f"{format_percent(busiest.share)} {_in(busiest.where)}"
    told = LARGEST.get(bound)
    return told(report) if told is not None else ""


def _loading(report: RankReport) -> str:
    loading = _in(report.critical_path.loading)
    return loading and f"loading is mostly {loading}"


def _host_work(report: RankReport) -> str:
    """What of the host's work lies longest on the critical path, and where most of that is."""
    path = report.critical_path
    kind = max(HOST_WORK, key=lambda name: path.by_class.get(name, 0))
    text = f"most of its work is {HOST_WORK[kind]}"
    if kind == "untraced":
        stacks = path.by_class.get("python", 0) > 0
        return text if stacks else f"{text}: with_stack=True records Python"
    if kind == "launch" and report.launches.device is not None and report.launches.device.launches_per_step:
        per_step = report.launches.device.launches_per_step
        return f"{text}, {counted(per_step, 'launch')} per step"
    op = next((op for op in path.by_op if op.class_name == kind), None)
    if op is None:
        return text
    name = "" if kind == "python" else op.name
    return f"{text}, the longest {f'{name} {_in(op.where)}'.strip()}" if name or op.where.file else text


def _in_the_open(report: RankReport) -> str:
    """What collectives take, where much of it is not hidden; per step where there are steps."""
    exposed, whole = report.breakdown_ns.exposed_comm, report.communication_ns
    if exposed < EXPOSED * report.span_ns:
        return ""
    steps, per_step = max(len(report.steps), 1), " per step" if report.steps else ""
    calls = sum(group.num_calls for group in report.collectives) / steps
    hidden = report.overlapped_communication_ns / max(whole, 1)
    bare = "all of it" if hidden < NOTHING_HIDDEN else format_percent(1 - hidden)
    time = format_seconds(whole / steps * 1e-9)
    return f"{time} of communication{per_step} in {counted(calls, 'collective')}, {bare} in the open"


def _update(report: RankReport) -> str:
    """What an optimizer wins that updates tensor by tensor."""
    gain = next((gain for gain in report.recoverable if gain.kind == "update"), None)
    if gain is None or not 0 < gain.ratio < WORTH_SAYING:
        return ""
    share = format_percent(gain.critical_ns / report.span_ns)
    faster = f"{significant(1 / gain.ratio)}× faster"
    return f"{gain.name} updates tensor by tensor, {share}: with fused=True or foreach=True {faster}, if that is twice as fast"


def _largest_op(report: RankReport) -> str:
    device = report.num_kernels > 0
    shares = {op.name: op.device_share if device else op.host_share for op in report.top_ops}
    name = max(shares, key=lambda op: shares[op], default="")
    if not DOMINANT <= shares.get(name, 0.0) <= 1:
        return ""  # on several threads at once: that says nothing
    users = [line for line in report.top_lines if name in {op.name for op in line.top_ops}]
    user = max(users, key=lambda line: line.device_ns if device else line.self_ns, default=Place())
    return f"{name} takes {format_percent(shares[name])} {_in(user)}".rstrip()


def _largest_line(report: RankReport) -> str:
    shares = [
        (line.device_share if report.num_kernels else line.host_share, _in(line)) for line in report.top_lines
    ]
    share, place = max(shares, default=(0.0, ""))
    # Threads that run at once can take more than the whole: that says nothing.
    return f"{format_percent(share)} {place}" if DOMINANT <= share <= 1 and place else ""


def _waited_in(report: RankReport) -> str:
    return f"mostly in {wait}" if (wait := _longest_wait(report)) else ""


def _waiting(report: RankReport) -> str:
    """Where the host waits for what was not recorded."""
    is_long = report.breakdown_ns.sync >= DOMINANT * report.span_ns
    return f"the host waits in {wait}" if is_long and (wait := _longest_wait(report)) else ""


def _longest_wait(report: RankReport) -> str:
    longest = max(report.sync_points, key=lambda point: point.total_ns, default=None)
    return "" if longest is None else f"{longest.name} {_in(longest.where)}".rstrip()


LARGEST: dict[Bound, Callable[[RankReport], str]] = {
    "compute": lambda report: _largest_op(report) or _largest_line(report),
    "operators": lambda report: _largest_op(report) or _largest_line(report),
    "python": _largest_line,
    "data": _loading,
    "host": _host_work,
    "synchronisation": _waited_in,
    "unrecorded": _waiting,
}
"""What takes most of what bounds, in words."""


def _in(place: Place | LineTotal) -> str:
    """A place of the program within a sentence; empty where it is not known."""
    return "" if place.file is None else f"in {place.function} ({place.file.rpartition('/')[2]}:{place.line})"


def _promise(report: RankReport, bound: Bound, data_share: Ratio | None) -> str:
    """The largest gain from what can be removed and was not told yet; of data the measured one, where there is one."""
    gains = [gain for gain in report.recoverable if gain.kind in REMOVABLE and WHOLE.get(gain.kind) != bound]
    own = [gain for gain in gains if gain.kind == CAUSE.get(bound)]
    ratios = [
        (gain.ratio if gain.kind != "data" or data_share is None else 1 - data_share, gain.name)
        for gain in own or gains
    ]
    ratio, name = min(ratios, key=lambda gain: gain[0], default=(1.0, ""))
    return f"without {name}, {significant(1 / ratio)}× faster" if 0 < ratio < WORTH_SAYING else ""


def judge_all(reports: Sequence[RankReport], job: Job | None) -> TraceVerdict | None:
    """Say what bounds a job: its slowest rank to work, and who makes the others wait."""
    if not reports:
        return None
    worst = job.slowest if job is not None else None
    lead = next((report for report in reports if worst is not None and report.rank == worst.rank), reports[0])
    verdict = judge(lead)
    if job is None or worst is None:
        return verdict
    known = f"of the {len(job.ranks)} ranks here, " if job.missing_ranks else ""
    text = f"{known}rank {worst.rank} makes the others wait {format_seconds(worst.caused_wait_ns * 1e-9)}; on it, {verdict.sentence}"
    return msgspec.structs.replace(verdict, sentence=text)
