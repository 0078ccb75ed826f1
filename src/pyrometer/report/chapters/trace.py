"""What `pyrometer trace` tells, and a check of its trace."""

from __future__ import annotations

import msgspec

from pyrometer.evidence.evidence import Evidence
from pyrometer.report.answer import step
from pyrometer.report.attachments import MOST_RANKS
from pyrometer.report.chapters import findings
from pyrometer.report.chapters.chapter import (
    Answer,
    Block,
    Chapter,
    Chart,
    Shares,
    Text,
    Told,
    chapter_of,
)
from pyrometer.report.chapters.measurement import SPLIT_CHANGE, SPLIT_HOW
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.charts.ranks import MOST_BARS
from pyrometer.report.documents import TraceDocument
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import trace_job, trace_words
from pyrometer.report.facts.layout import Section
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.records.rank import RankReport

_SLUGS = {
    "overview timeline": "breakdown",
    "timeline": "steps path",
    "findings": "gains",
    "flame": "tree",
    "operators": "operators lines modules kernels copies phases",
    "roofline": "roofline",
    "idle": "idle gaps sync launches",
    "memory": "allocations",
    "ranks": "launch ranks matched stragglers collectives pipeline",
    "quality": "health capture",
    "overview comparison": "evidence parts",
    "comparison": "groups changed nodes difference",
}
_PAGES = {slug: pages for pages, slugs in _SLUGS.items() for slug in slugs.split()}

OVER_TIME = "The same over time, from the start of what was traced to its end"
DISTORTS = (
    "Times are traced, which makes them longer, some parts more than others; steps count from their start to their end."
)  # fmt: skip

BARS_HOW = (
    "Each bar is the mean step of a rank, divided as in the bar of one rank. Hatched is what a rank waited in collectives for the last one "
    "to come: the late rank has the least of it."
)
LATE = "Who is late in which step"
LAGS_HOW = (
    "A row is a rank, a column a step. The darker, the further the rank came behind the middle one of its group to a collective, by work of "
    "its own: what it waited for in other groups is taken off."
)
LAGS_CHANGE = "One dark row is a rank that is slow; dark cells here and there are uneven batches or hiccups; a dark column is a moment that met many."
STAGES_HOW = (
    "A bar is the share of a step in which a stage computes nothing; the line is what the schedule alone leaves, with equal stages and free transfers. "
    "One stage with a short bar among long ones has more work than the others."
)
DIVIDED = "Times are scaled to the measured median; the profiler, under which the shares were taken, lengthens some parts more than others."


def tell(document: TraceDocument) -> Told:
    """The comparison or the job first, then single ranks: the one that the verdict is about before the others."""
    answer = Answer(of_trace.headline(document), of_trace.subtitle(document), verdict=_verdict(document))
    told = [*findings.of_document(document), *machine(document.environment, "Recorded on")]
    told += findings.reading(document.diagnosis.reading)
    told += [] if document.diff is not None else beside(document.evidence)
    parts = of_trace.parts(document, most_ranks=MOST_RANKS)
    leads = next((part for part in parts if part.report is not None), None)
    for part in parts:
        whose = str(part.report.rank) if part.report is not None else ""
        chapters = [
            _chapter(
                section,
                part.report,
                pages_of(section.slug, alone=True, leads=part is leads or not whose),
                whose,
            )
            for section in part.sections
        ]
        if part.title:
            chapters = [chapter._replace(title=f"{chapter.title} · {part.title}") for chapter in chapters]
        told += [with_stages(chapter, document.evidence) for chapter in chapters]
    return Told(answer, told + provenance(document, document.environment))


def _verdict(document: TraceDocument) -> str:
    """Who makes the others wait, else what bounds a step; of a comparison its own sentence."""
    if document.diff is not None:
        return document.diff.sentence
    late = trace_job.late(document.evidence.job)
    if late:
        return late
    lead = next(iter(of_trace.ordered_ranks(document)), None)
    return "" if lead is None else step.verdict(msgspec.structs.replace(document.evidence, trace=lead))


def beside(evidence: Evidence) -> list[Chapter]:
    """A bar per rank, the one that matters first; nothing where there are not several."""
    job, verdict = evidence.job, evidence.trace_verdict
    if job is None or len(job.ranks) < 2:
        return []
    first = None if verdict is None else verdict.rank
    rows = sorted(job.ranks, key=lambda row: row.rank != first)
    bars: list[Block] = [Chart("rank-bars", rows[:MOST_BARS])]
    left = len(rows) - MOST_BARS
    bars += [Text(f"{left:,} more ranks stand in the table.")] if left > 0 else []
    if job.lag_map is not None and any(lag for row in job.lag_map.lag_ns for lag in row):
        bars.append(Chart("lag-map", job.lag_map, LATE, LAGS_HOW, LAGS_CHANGE, pages="ranks"))
    return [Chapter("rank-bars", "A step of every rank", bars, "overview ranks", how=BARS_HOW, label="Ranks")]


def split(report: RankReport, apart: str, measured: Shares | None = None) -> Chapter:
    """Where a step goes.

    Args:
        report: which divides it.
        apart: what is measured of its data without the profiler.
        measured: its parts on the clock of a measurement; without it they are on that of the trace.
    """
    steps = len(report.steps)
    whole = f"one step, divided as {steps:,} traced steps were" if steps > 1 else "one step"
    return Chapter(
        "split",
        "Where the step goes",
        [measured or _shares(report), Chart("over-time", report, OVER_TIME, pages="timeline"), *([Text(apart)] if apart else [])],
        "overview timeline",
        how=SPLIT_HOW.format(whole, DISTORTS if measured is None else DIVIDED),
        change=SPLIT_CHANGE,
        label="Step",
        place="story",
    )  # fmt: skip


def of_job(evidence: Evidence) -> list[Chapter]:
    """The ranks beside each other, for a document that is not about traces alone."""
    if evidence.job is None:
        return []
    sections = trace_job.sections(evidence.job)
    told = [_chapter(section, None, pages_of(section.slug)) for section in sections]
    return beside(evidence) + [with_stages(chapter, evidence) for chapter in told]


def with_stages(chapter: Chapter, evidence: Evidence) -> Chapter:
    """The chapter of pipelines with its drawing; any other as it is."""
    if chapter.slug != "pipeline" or evidence.job is None:
        return chapter
    bars = Chart("stage-bars", evidence.job.pipelines)
    return chapter._replace(blocks=[bars, *chapter.blocks], how=STAGES_HOW)


def behind_split(report: RankReport, capture: Capture | None) -> list[Chapter]:
    """The other chapters of a trace beside a measurement."""
    sections = [section for section in of_rank.sections(report, capture) if section.slug != "breakdown"]
    return [_chapter(section, report, pages_of(section.slug), str(report.rank)) for section in sections]


def pages_of(slug: str, *, alone: bool = False, leads: bool = True) -> str:
    """The pages, separated by spaces, on which a chapter of a trace stands.

    Args:
        slug: the chapter.
        alone: whether the document is about nothing but a trace, so that gains stand on its overview.
        leads: whether it is about the rank that the overview tells of.

    >>> pages_of("breakdown"), pages_of("breakdown", leads=False), pages_of("anything")
    ('overview timeline', 'timeline', 'operators')
    >>> pages_of("gains"), pages_of("gains", alone=True)
    ('findings', 'overview operators')
    """
    pages = "overview operators" if alone and slug == "gains" else _PAGES.get(slug, "operators")
    return pages if leads else pages.removeprefix("overview ")


def _chapter(section: Section, report: RankReport | None, pages: str, rank: str = "") -> Chapter:
    chapter = chapter_of(section, pages, rank=rank)
    if report is None:
        return chapter
    if section.slug == "breakdown":
        blocks: list[Block] = [_shares(report), Chart("over-time", report, OVER_TIME)]
        return chapter._replace(blocks=blocks)
    if section.slug in {"roofline", "tree"}:
        return chapter_of(section, pages, Chart(section.slug, report), rank=rank)
    return chapter


def _shares(report: RankReport) -> Shares:
    whole_ns = trace_words.typical_ns(report)
    shares = step.apart(report, trace_words.part_shares(report.breakdown_ns, whole_ns), 1e-9 * whole_ns)
    return Shares(shares, "the traced time", in_all=of_rank.in_all(report))
