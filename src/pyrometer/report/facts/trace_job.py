"""Several ranks beside each other, in words."""

from __future__ import annotations

from pyrometer.quantity import counted, format_bytes, format_rate
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.report.facts.trace_words import (
    MISMATCHES,
    MOST_LISTED,
    PART_NAMES,
    PART_SLOTS,
    ns,
    short,
    widest_parts,
)
from pyrometer.trace.jobs.job import Job


def sections(job: Job) -> list[Section]:
    """The chapters of a job; empty ones are left out."""
    return told([_ranks(job), _stragglers(job), _collectives(job), _pipelines(job)])


def late(job: Job | None) -> str:
    """The rank that the others wait for; empty where they wait for none."""
    worst = job.slowest if job is not None else None
    if worst is None:
        return ""
    return f"Rank {worst.rank} makes the others wait {ns(worst.caused_wait_ns)}"


def _ranks(job: Job) -> Section:
    facts = [Fact("ranks", str(len(job.ranks)), "" if job.world_size is None else f"of {job.world_size}")]
    if job.compute_imbalance is not None:
        facts.append(Fact("imbalance of computing", f"{job.compute_imbalance:.3g}×", "largest over mean"))
    if job.clock_residual_ns is not None:
        facts.append(
            Fact(
                "clocks aligned to within",
                ns(job.clock_residual_ns),
                "how far times between ranks are uncertain",
            )
        )
    facts += [Fact("caution", warning) for warning in job.warnings]
    facts += [Fact("note", note) for note in job.notes]
    held = widest_parts({name: sum(rank.parts.get(name, 0) for rank in job.ranks) for name in PART_SLOTS})
    body = [
        (
            str(rank.rank),
            ns(rank.span_ns),
            ns(rank.step_ns),
            ns(rank.waited_ns),
            *(percent(rank.parts.get(name, 0) / max(rank.span_ns, 1)) for name in held),
        )
        for rank in job.ranks[: 4 * MOST_LISTED]
    ]
    columns = ("rank", "span", "mean step", "waited", *(PART_NAMES[name] for name in held))
    return Section(
        "ranks",
        "Ranks",
        facts,
        Table(columns, body),
        "Waited is time in collectives until the last rank began: the time of the slow rank, on the clocks of the others. Shares "
        "are of each rank's own span; exposed communication holds the waiting. The smallest parts have no column.",
    )


def _stragglers(job: Job) -> Section:
    body = [
        (
            str(straggler.rank),
            ns(straggler.caused_wait_ns),
            percent(straggler.share),
            ns(straggler.gain_ns),
            "–" if straggler.persistence is None else percent(straggler.persistence),
            ", ".join(short(suspect.name, 40) for suspect in straggler.suspects[:3]),
        )
        for straggler in job.stragglers[:MOST_LISTED]
    ]
    columns = (
        "rank",
        "makes others wait",
        "of all waiting",
        "fixing it brings",
        "late, of the steps",
        "late with",
    )
    return Section(
        "stragglers",
        "Who makes whom wait",
        [],
        Table(columns, body, frozenset({5})),
        "A straggler begins collectives last. What it is late with takes longer on it than on the median rank.",
    )


def _collectives(job: Job) -> Section | None:
    body = [
        (
            f"{collective.name} {collective.dtype or ''}".strip(),
            f"{collective.num_matched:,}",
            "–" if collective.bytes is None else format_bytes(collective.bytes),
            ns(collective.latency_ns),
            ns(collective.skew_ns),
            ns(collective.wait_ns),
            format_rate(collective.bus_bandwidth, "B/s") if collective.bus_bandwidth else "–",
        )
        for collective in job.collectives[:MOST_LISTED]
    ]
    facts = [
        Fact("matched", counted(job.num_matched, "collective"), "each counts once, not once per rank"),
        Fact("waiting", ns(job.wait_ns), "all ranks together"),
    ]
    facts += [
        Fact("does not match", f"{number:,}", MISMATCHES.get(kind, kind))
        for kind, number in job.num_mismatches.items()
        if number
    ]
    columns = ("collective", "matched", "bytes per message", "moving data", "skew", "waiting", "bus")
    how = (
        "A collective that several ranks recorded is one row's one match. Bytes, moving data and skew are medians per match: one "
        "message, its shortest duration among the ranks, and the latest less the earliest start. Waiting is the sum over all "
        "matches and ranks. A rank's own chapter tells all of its calls together instead, whether matched or not."
    )
    return (
        Section("matched", "Collectives over all ranks", facts, Table(columns, body), how) if body else None
    )


def _pipelines(job: Job) -> Section:
    body = [
        (
            f"stage {stage.stage}",
            str(stage.rank),
            percent(stage.bubble),
            ns(stage.compute_ns),
            ns(stage.wait_ns),
            f"{pipeline.num_microbatches} microbatches, {percent(pipeline.theoretical_bubble)} in theory",
        )
        for pipeline in job.pipelines
        for stage in pipeline.stages
    ]
    columns = ("pipeline", "rank", "bubble", "computes per step", "waits", "schedule")
    return Section("pipeline", "Pipeline", [], Table(columns, body, frozenset({5})))
