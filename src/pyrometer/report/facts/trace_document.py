"""A document about traces in words: the answer first, then chapter after chapter."""

from __future__ import annotations

from typing import NamedTuple

from pyrometer.quantity import counted
from pyrometer.report.documents import TraceDocument
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_diff, trace_job, trace_words
from pyrometer.report.facts.layout import Section
from pyrometer.trace.records.rank import RankReport


class Part(NamedTuple):
    """Chapters about one thing: a comparison, a job, or one rank."""

    title: str  # empty where the document has only one part
    report: RankReport | None
    sections: list[Section]


def headline(document: TraceDocument) -> str:
    """The answer."""
    if document.diff is not None:
        return document.diff.sentence
    if document.evidence.trace_verdict is not None:
        return document.evidence.trace_verdict.sentence
    return "nothing was recorded"


def subtitle(document: TraceDocument) -> str:
    """What the answer rests on."""
    told = [document.target]
    if document.diff is None and len(document.reports) > 1:
        told.append(number_of_ranks(document))
    for report in [] if document.diff is not None else ordered_ranks(document)[:1]:
        whose = f"rank {report.rank}: " if len(document.reports) > 1 else ""
        told.append(f"{whose}{trace_words.ns(report.span_ns)} traced")
        if report.steps and trace_words.median_step(report) <= report.span_ns:  # marks may outlast the work
            told.append(
                f"{counted(len(report.steps), 'step')}, median {trace_words.ns(trace_words.median_step(report))}"
            )
        told.append(f"{report.num_events:,} events")
        told += sorted(set(report.devices)) or ["no device work"]
        told.append(f"confidence {confidence(document, report)}")
    return " · ".join(told)


def confidence(document: TraceDocument, report: RankReport) -> str:
    """How far a rank's trace can be trusted; beside doubtful files no comparison is more than medium."""
    job = document.evidence.job
    doubtful = job is not None and bool(job.warnings)
    return "medium" if doubtful and report.confidence == "high" else report.confidence


def number_of_ranks(document: TraceDocument) -> str:
    """How many ranks are here, and of how many where some are missing."""
    job = document.evidence.job
    held = len(document.reports) if job is None else len(job.ranks)
    if job is not None and job.world_size is not None and job.missing_ranks and held < job.world_size:
        return f"{held:,} of {job.world_size:,} ranks"
    return counted(held, "rank")


def ordered_ranks(document: TraceDocument) -> list[RankReport]:
    """The rank that the verdict is about, then the others as they come."""
    about = document.evidence.trace_verdict.rank if document.evidence.trace_verdict is not None else None
    return sorted(document.reports, key=lambda report: report.rank != about)


def parts(document: TraceDocument, *, most_ranks: int) -> list[Part]:
    """The comparison or the job first, then single ranks; of many, the one that the verdict is about comes first."""
    made = []
    if document.diff is not None:
        return [Part("", None, trace_diff.sections(document.diff))]
    if document.evidence.job is not None:
        made.append(Part("", None, trace_job.sections(document.evidence.job)))
    ordered = ordered_ranks(document)
    several = len(ordered) > 1
    made += [
        Part(
            f"rank {report.rank}" if several else "",
            report,
            of_rank.sections(report, document.evidence.capture),
        )
        for report in ordered[:most_ranks]
    ]
    return made
