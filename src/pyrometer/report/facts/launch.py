"""How the ranks of a job ran, in words."""

from __future__ import annotations

import signal

from pyrometer.evidence.launch_outcome import LaunchOutcome, RankOutcome
from pyrometer.quantity import counted, format_bytes, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.report.facts.surroundings import exit_words
from pyrometer.text import listed
from pyrometer.workload.ranks.record import Stall, Waiting


def sections(launch: LaunchOutcome) -> list[Section]:
    """The chapter of a job that ran under observation."""
    facts = [Fact("ranks", str(launch.num_ranks), batch(launch))]
    if launch.missing:
        facts.append(Fact("never began", listed(launch.missing)))
    if launch.restarts:
        facts.append(Fact("restarted", counted(launch.restarts, "time"), "the last attempt is told"))
    facts += [Fact("did not move" if stall.resumed else "hung", told(stall)) for stall in launch.stalls]
    columns = ("rank", "ended", "steps", "median step", "waits for data", "peak memory")
    how = (
        "Each rank is observed as a script of its own: steps and data as it ran, without the profiler. In a step that ends with a "
        "collective all ranks are as slow as the slowest; who it was, the traces tell below."
    )
    return [Section("launch", "Ranks as they ran", facts, Table(columns, [*map(_row, launch.ranks)]), how)]


def batch(launch: LaunchOutcome) -> str:
    """The global batch with its factors, as far as they are known.

    >>> batch(LaunchOutcome(num_ranks=2, ranks=[], leading=None))
    ''
    """
    if launch.global_batch is None:
        return ""
    first = launch.ranks[0]
    factors = f"{launch.num_ranks} ranks × {first.micro_batch} samples"
    times = "" if first.accumulation == 1 else f" × {first.accumulation} accumulated"
    return f"global batch {launch.global_batch} = {factors}{times}"


def ended(launch: LaunchOutcome) -> list[str]:
    """One line for what failed first, and one for a hang."""
    lines = [f"{told(stall)}" for stall in launch.stalls if not stall.resumed]
    failed = launch.failed
    if failed:
        others = (
            f"; rank {listed([one.rank for one in failed[1:]])} ended after it" if len(failed) > 1 else ""
        )
        killed = ", perhaps for want of memory" if failed[0].exit_code == -signal.SIGKILL else ""
        lines.append(f"rank {failed[0].rank} ended {exit_words(failed[0].exit_code)}{killed}{others}")
    if launch.missing:
        lines.append(f"rank {listed(launch.missing)} never began")
    return lines


def told(stall: Stall) -> str:
    """Who waits for whom, and where both are.

    >>> missing = [Waiting(rank=2, place="/a/train.py:31", function="validate")]
    >>> waiting = [Waiting(rank=0, place="/a/train.py:40", operation="gloo:all_reduce", sequence=7)]
    >>> told(Stall(after_s=80, silent_s=30, waiting=waiting, missing=missing))
    'for 30.0 s rank 0 waits in all_reduce 7 (train.py:40) for rank 2, which is in validate (train.py:31)'
    """
    silent = format_seconds(stall.silent_s)
    late = " and ".join(f"rank {one.rank}, which {_stands(one)}" for one in stall.missing[:3])
    late += f", and {len(stall.missing) - 3} more" if len(stall.missing) > 3 else ""
    if not stall.waiting:
        return f"for {silent} no collective is under way, and nothing moves: {late}"
    first = stall.waiting[0]
    operation = (first.operation or "").partition(":")[2] or first.operation
    where = f"{operation} {first.sequence} ({_short(first.place)})"
    who = listed([one.rank for one in stall.waiting])
    verb = "waits" if len(stall.waiting) == 1 else "wait"
    return f"for {silent} rank {who} {verb} in {where} for {late or 'each other: the network is stuck'}"


def _stands(one: Waiting) -> str:
    if one.place is None:
        return "gives no answer"
    called = "the script" if one.function == "<module>" else one.function
    if one.operation is not None:
        return f"is in {one.operation.partition(':')[2]} {one.sequence} ({_short(one.place)})"
    return f"is in {called} ({_short(one.place)})"


def _short(place: str | None) -> str:
    return "?" if place is None else place.rpartition("/")[2]


def _row(one: RankOutcome) -> tuple[str, ...]:
    peak = one.allocated_peak_bytes or one.peak_bytes
    return (
        str(one.rank),
        "well" if not one.exit_code else exit_words(one.exit_code),
        f"{one.num_steps:,}",
        "–" if one.step_s is None else format_seconds(one.step_s),
        "–" if one.data_share is None else percent(one.data_share),
        "–" if peak is None else format_bytes(peak),
    )
