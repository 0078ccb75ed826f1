"""What `pyrometer bench` tells."""

from __future__ import annotations

from pyrometer.report.chapters import findings, loading, measurement
from pyrometer.report.chapters.chapter import Answer, Chapter, Told
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.documents import BenchDocument


def tell(document: BenchDocument) -> Told:
    """A measurement or a verdict, and what else was asked for."""
    m, v = document.evidence.measurement, document.verdict
    answer = Answer(f"nothing was measured of {document.target}", tone="words")
    chapters: list[Chapter] = []
    if m is not None:
        answer = measurement.answer(m)
        chapters += measurement.split(m)
    chapters += findings.of_document(document)
    chapters += machine(document.environment) if v is None else []
    if v is not None:
        answer = measurement.verdict_answer(v)
        chapters += measurement.verdict(v, machine(document.environment, "Compared on"))
    if m is not None:
        chapters += [measurement.quality(m), measurement.figures(m), *measurement.chapters(m)]
    if document.evidence.loading is not None:
        chapters += loading.chapters(document.evidence.loading, document.diagnosis.findings)
    if document.cold is not None:
        chapters.append(measurement.cold_starts(document.cold))
    if document.soak is not None:
        chapters.append(measurement.soak(document.soak))
    return Told(answer, chapters + provenance(document, document.environment))
