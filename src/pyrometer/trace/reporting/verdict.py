"""The answer to a trace in one sentence: what bounds it, what takes most of that, and what could be won."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from pyrometer.place import Place
from pyrometer.quantity import Ratio, counted, format_percent, format_seconds, significant
from pyrometer.record import Record, doc
from pyrometer.trace.analysis.breakdown import Parts
from pyrometer.trace.analysis.recoverable import Recoverable
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.reporting.rank_report import RankReport
from pyrometer.trace.reporting.totals import LineTotal

Bound = Literal[
    "compute",
    "communication",
    "copies",
    "synchronisation",
    "data",
    "host",
    "operators",
    "python",
    "unrecorded",
]

OF_DEVICES: dict[Bound, tuple[str, ...]] = {
    "compute": ("compute",),
    "communication": ("exposed_comm",),
    "copies": ("exposed_memcpy", "memset"),
    "synchronisation": ("sync",),
    "data": ("data",),
    "host": ("runtime", "host", "other"),
    "unrecorded": ("idle",),
}
"""What bounds a program with a device: the class to which the largest part of its time goes."""

OF_HOSTS: dict[Bound, tuple[str, ...]] = {
    "communication": ("exposed_comm",),
    "data": ("data",),
    "operators": ("runtime", "host", "sync"),
    "python": ("other",),
    "unrecorded": ("idle",),
}
"""The same without device work."""

DOMINANT = 0.3
"""Of the span, from which on one operator or function is named as what takes most of it."""

EXPOSED = 0.1
"""Of the span, from which on communication that nothing hides is told."""

NOTHING_HIDDEN = 0.001
"""Of communication, below which none of it is hidden."""

REMOVABLE = frozenset({"data", "copy", "collective", "launch", "sync", "gap"})
"""Gains from what need not be there at all; of operators and lines only a supposed speed-up is known."""

WORTH_SAYING = 0.95
"""A predicted ratio below this is told in the sentence itself."""

SENTENCES: dict[Bound, str] = {
    "compute": "compute-bound: kernels run {share} of the time",
    "communication": "communication-bound: {share} of the time goes to communication that nothing hides",
    "copies": "copy-bound: {share} of the time goes to copies and fills that nothing hides",
    "synchronisation": "synchronisation-bound: {share} of the time the host waits for a device that has run dry",
    "data": "data-bound: {share} of the time the step waits for its data",
    "host": "host-bound: {share} of the traced span the device waits while the host runs Python, operators or launches",
    "operators": "operators take {share} of the time",
    "python": "Python-bound: {share} of the time runs Python outside of operators",
    "unrecorded": "nothing was recorded for {share} of the time",
}


NOTHING = "nothing to time was recorded: neither operators nor device work of any length"


class TraceVerdict(Record, frozen=True, kw_only=True):
    """What one rank's trace comes down to."""

    rank: int
    bound: Annotated[Bound, doc("class with the largest part of the time")]
    share: Annotated[
        float, doc("of the span; of a step where the share of data is known without the profiler")
    ]
    sentence: Annotated[str, doc("for people")]
    recoverable: Annotated[list[Recoverable], doc("the three largest predicted gains")] = []


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
    bound, share = bound_of(report.breakdown_ns, has_device=report.device_busy_ns > 0, data_share=data_share)
    promises = [
        SENTENCES[bound].format(share=format_percent(share)),
        _most(report, bound, busiest),
        _in_the_open(report),
    ]
    if bound != "unrecorded":
        promises.append(_promise(report, data_share))
    return TraceVerdict(
        rank=report.rank,
        bound=bound,
        share=share,
        sentence="; ".join(filter(None, promises)),
        recoverable=report.recoverable[:3],
    )


def _most(report: RankReport, bound: Bound, busiest: Busiest | None) -> str:
    """What takes most of the time that bounds, where one function or operator does; empty for all else."""
    if bound == "data":
        loading = _in(report.critical_path.loading)
        return loading and f"loading is mostly {loading}"
    if bound == "python" and busiest is not None and busiest.share >= DOMINANT:
        return f"{format_percent(busiest.share)} {_in(busiest.where)}"
    if bound in {"compute", "operators"}:
        return _largest_op(report) or _largest_line(report)
    if bound == "synchronisation":
        return _longest_wait(report)
    return _largest_line(report) if bound == "python" else ""


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


def _longest_wait(report: RankReport) -> str:
    longest = max(report.sync_points, key=lambda point: point.total_ns, default=None)
    return "" if longest is None else f"mostly in {longest.name} {_in(longest.where)}".rstrip()


def _in(place: Place | LineTotal) -> str:
    """A place of the program within a sentence; empty where it is not known."""
    return "" if place.file is None else f"in {place.function} ({place.file.rpartition('/')[2]}:{place.line})"


def _promise(report: RankReport, data_share: Ratio | None) -> str:
    """The largest gain from what can be removed; of data the measured one, where there is one."""
    gains = [
        (gain.ratio if gain.kind != "data" or data_share is None else 1 - data_share, gain.name)
        for gain in report.recoverable
        if gain.kind in REMOVABLE
    ]
    ratio, name = min(gains, key=lambda gain: gain[0], default=(1.0, ""))
    return f"without {name}, {significant(1 / ratio)}× faster" if 0 < ratio < WORTH_SAYING else ""


def judge_all(reports: Sequence[RankReport], job: Job | None) -> TraceVerdict | None:
    """Say what bounds a job: its slowest rank to work, and who makes the others wait."""
    if not reports:
        return None
    verdict = judge(_critical_rank(reports, job))
    if job is None or not job.stragglers:
        return verdict
    worst = job.stragglers[0]
    known = f"of the {len(job.ranks)} ranks here, " if job.missing_ranks else ""
    text = f"{known}rank {worst.rank} makes the others wait {format_seconds(worst.caused_wait_ns * 1e-9)}; on it, {verdict.sentence}"
    return msgspec.structs.replace(verdict, sentence=text)


def _critical_rank(reports: Sequence[RankReport], job: Job | None) -> RankReport:
    """The rank that the others wait for, or else the first."""
    late = job.stragglers[0].rank if job is not None and job.stragglers else None
    return next((report for report in reports if report.rank == late), reports[0])


def bound_of(parts: Parts, *, has_device: bool, data_share: Ratio | None = None) -> tuple[Bound, float]:
    """The class with the largest part, and its share; the share of data as it was measured, where it was.

    >>> bound_of(Parts(compute=3, exposed_memcpy=2, memset=2), has_device=True)
    ('copies', 0.5714285714285714)
    """
    shares = shares_of(parts, has_device=has_device, data_share=data_share)
    bound = max(shares, key=lambda name: shares[name])
    return bound, shares[bound]


def shares_of(parts: Parts, *, has_device: bool, data_share: Ratio | None = None) -> dict[Bound, float]:
    """What each class takes of the traced time; or of a step, where the share of data is known without the profiler.

    >>> shares_of(Parts(host=3, other=1, data=12), has_device=False, data_share=0.5)["operators"]
    0.375
    """
    classes = OF_DEVICES if has_device else OF_HOSTS
    sums = {bound: sum(getattr(parts, name) for name in names) for bound, names in classes.items()}
    rest = parts.total_ns - parts.data
    if data_share is None or not rest:
        return {bound: ns / max(parts.total_ns, 1) for bound, ns in sums.items()}
    return {
        bound: data_share if bound == "data" else (1 - data_share) * ns / rest for bound, ns in sums.items()
    }
