"""What `pyrometer check` tells."""

from __future__ import annotations

from pyrometer.report.answer import step
from pyrometer.report.chapters import compile as of_compile
from pyrometer.report.chapters import findings, loading, measurement
from pyrometer.report.chapters import memory as of_memory
from pyrometer.report.chapters import trace as of_trace
from pyrometer.report.chapters.chapter import Answer, Chapter, Facts, Shares, Told, chapter_of
from pyrometer.report.chapters.surroundings import machine, notes, provenance
from pyrometer.report.documents import CheckDocument
from pyrometer.report.facts import dataflow as dataflow_facts
from pyrometer.report.facts import host as host_facts
from pyrometer.report.facts import launch as of_launch
from pyrometer.report.facts import loading as loading_facts
from pyrometer.report.facts import step as of_step
from pyrometer.report.facts import surroundings
from pyrometer.report.facts.ceilings import ceilings_section
from pyrometer.report.facts.program import numerics_section, program_section
from pyrometer.report.facts.trace_job import late


def tell(document: CheckDocument) -> Told:
    """The answer, where the step goes, what to do, and then what each observer saw."""
    chapters = [*_first_screen(document), *_observed(document), *_besides(document)]
    return Told(_answer(document), chapters + provenance(document, document.environment))


def _answer(document: CheckDocument) -> Answer:
    evidence, m = document.evidence, document.evidence.measurement
    bound = evidence.trace_verdict.sentence if evidence.trace_verdict is not None else ""
    if m is None:
        nothing = f"Nothing could be measured of {document.target}."
        return Answer("No step was seen", nothing, tone="words", bound=bound)
    answer = measurement.answer(m, bound)
    if m.failure is not None:
        return answer
    if said := late(evidence.job):
        return answer._replace(verdict=said)
    said = step.verdict(evidence)
    return answer._replace(verdict=said, besides=bound.partition("; ")[2] if said else "")


def _first_screen(document: CheckDocument) -> list[Chapter]:
    m = document.evidence.measurement
    splits = _split(document)
    chapters = splits[:1]
    chapters += findings.of_document(document)
    chapters += machine(document.environment, "Measured on" if m is not None else "Machine")
    if m is not None:
        chapters += [measurement.quality(m), measurement.figures(m, document.evidence.memory)]
    return chapters + findings.reading(document.diagnosis.reading) + splits[1:]


def _split(document: CheckDocument) -> list[Chapter]:
    m, trace = document.evidence.measurement, document.evidence.trace
    measured = measurement.split(m) if m is not None else []
    if trace is None:
        return measured
    apart = loading_facts.apart(m, document.evidence.loading)
    if measured and loading_facts.profiler_distorts(m, document.evidence.loading, trace):
        return [
            *measured,
            of_trace.split(trace, apart)._replace(slug="traced-split", pages="timeline", place=""),
        ]
    parts = Shares(step.drawn(document.evidence), "a step", in_all=of_step.in_all(document.evidence))
    return [of_trace.split(trace, apart, parts if m is not None else None)]


def _observed(document: CheckDocument) -> list[Chapter]:
    chapters: list[Chapter] = []
    m, trace = document.evidence.measurement, document.evidence.trace
    if m is not None:
        chapters += measurement.chapters(m, loading_facts.share_table(m, document.evidence.loading, trace))
    launch = document.evidence.launch
    chapters += [] if launch is None else [chapter_of(one, "ranks") for one in of_launch.sections(launch)]
    chapters += of_trace.of_job(document.evidence)
    if trace is not None:
        chapters += of_trace.behind_split(trace, document.evidence.capture)
    host = None if document.evidence.host is None else host_facts.section(document.evidence.host)
    if host is not None:
        chapters.append(chapter_of(host, "operators", label="Host"))
    values = (
        None if document.evidence.dataflow is None else dataflow_facts.section(document.evidence.dataflow)
    )
    if values is not None:
        chapters.append(chapter_of(values, "operators", label="Values"))
    if document.evidence.ceilings:
        chapters.append(chapter_of(ceilings_section(document.evidence.ceilings), "timeline"))
    if document.evidence.compiled is not None:
        chapters += of_compile.of_check(document.evidence.compiled)
    if document.evidence.memory is not None:
        chapters += of_memory.of_check(document)
    if document.evidence.loading is not None:
        chapters += loading.chapters(document.evidence.loading, document.diagnosis.findings)
    return chapters


def _besides(document: CheckDocument) -> list[Chapter]:
    chapters = []
    if document.evidence.numerics is not None:
        chapters.append(chapter_of(numerics_section(document.evidence.numerics), "quality"))
    if document.evidence.program is not None:
        chapters.append(chapter_of(program_section(document.evidence.program), "environment"))
    if document.evidence.script is not None:
        chapters.append(
            Chapter("script", "The script", [Facts(surroundings.script_facts(document.evidence.script))])
        )
    return chapters + notes(document.notes, "quality")
