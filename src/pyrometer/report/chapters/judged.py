"""What an audit, a calibration, a matrix and two stored runs side by side tell."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Answers,
    Caveats,
    Chapter,
    Code,
    Figures,
    Heat,
    Rows,
    Text,
    Told,
)
from pyrometer.report.chapters.check import notes
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.documents import AuditDocument, CalibrationDocument, MatrixDocument
from pyrometer.report.facts import audit as of_audit
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts.layout import Section
from pyrometer.report.run_documents import CompareDocument


def audit(document: AuditDocument) -> Told:
    """The score, then the items group by group."""
    answer = Answer(of_audit.headline(document.audit), of_audit.subtitle(document.audit))
    told = [
        Chapter(one.slug, one.title, [Answers(one.table, [row[1] for row in one.table.rows])])
        for one in of_audit.sections(document.audit)
        if one.table is not None
    ]
    told += notes(document.notes) + machine(document.environment, "Judged on")
    return Told(answer, told + provenance(document, document.environment))


def calibration(document: CalibrationDocument) -> Told:
    """Which differences this machine can tell apart, and its peaks."""
    found = document.calibration
    answer = Answer(of_calibration.headline(found), of_calibration.subtitle(found))
    how = (
        "Each program was compared with itself. The scatter of the blocks says which true difference a comparison of 10 or 60 seconds "
        "would find in 95 of 100 cases. Wrong verdicts are counted by flipping the labels of the blocks at random."
    )
    change = "Other programs on the machine: calibrate again where and when you measure."
    resolutions = Rows(of_calibration.resolution_table(found), "Resolution by program", is_whole=True)
    trust = Caveats(found.advice, of_calibration.trust(found), not found.advice)
    told = [
        *machine(document.environment, "Calibrated on"),
        Chapter("quality", "Can it be trusted?", [trust], place="card"),
        Chapter("resolution", "What can be told apart", [resolutions], how=how, change=change, label="Apart"),
    ]
    if found.peaks is not None:
        blocks = [Rows(of_calibration.peak_table(found.peaks), "Peaks", is_whole=True)]
        if found.peaks.skipped:
            folded = f"Not measured ({len(found.peaks.skipped)})"
            blocks.append(Rows(of_calibration.skipped_table(found.peaks), "Not measured", folded))
        told.append(Chapter("peaks", f"Measured peaks of {found.peaks.name}", blocks))
    return Told(answer, told + provenance(document, document.environment))


def matrix(document: MatrixDocument) -> Told:
    """Which configuration to use, and every figure beside it."""
    found = document.matrix
    answer = Answer(of_matrix.headline(found), of_matrix.subtitle(found))
    how = (
        "Each figure is a paired comparison with eager float32 at the same batch size, inside one process: blue is faster, orange slower, the "
        "stronger the more; below it the measured throughput. An undecided cell says so."
    )
    change = (
        "Other input shapes, another machine, or a larger tolerance of the output. Between batch sizes the throughputs were measured one after "
        "the other: look at their intervals before choosing by a few per cent."
    )
    heat = Heat(of_matrix.heat_map(found), "Speed-up by configuration")
    cells = Rows(of_matrix.main_table(found), "Configurations", is_whole=True)
    told = [
        Chapter("heat", "Speed-up over eager float32", [heat], how=how, change=change, is_brief=False),
        Chapter("cells", "Every configuration", [cells, Text(of_matrix.LEGEND)]),
        Chapter("tails", "Tails and first calls", [Rows(of_matrix.tail_table(found), is_whole=True)]),
        Chapter("costs", "Memory, graphs and numerics", [Rows(of_matrix.cost_table(found), is_whole=True)]),
    ]
    if found.rejected:
        rejected = Rows(of_matrix.rejection_table(found), is_whole=True)
        told.append(Chapter("rejected", "Not recommended", [rejected]))
    told += machine(document.environment)
    return Told(answer, told + provenance(document, document.environment))


def compare(document: CompareDocument) -> Told:
    """What two stored runs took, why that is no verdict, and what changed between them."""
    found = document.comparison
    figures = of_comparison.top_figures(found)
    how = (
        "Each run's own figures, taken at its own moment; an interval tells how well a median is known. Medians whose intervals overlap are "
        "not told apart."
    )
    measured = Rows(of_comparison.figure_table(found), "Figures of both", is_whole=True)
    sides = Rows(of_comparison.side_table(found), "The two runs", is_whole=True)
    changed = [_changed(section) for section in of_comparison.sections(found)]
    told = machine(found.environment)
    if figures:
        told.append(Chapter("figures", "What changed", [Figures(figures)], place="quiet"))
    told.append(Chapter("proof", "To prove a difference", [Code(found.prove_with)]))
    told += [one for one in changed if one.slug == "findings"]
    told.append(Chapter("measured", "Figures of both", [measured], "overview comparison", how=how))
    told.append(Chapter("sides", "The two runs", [sides]))
    told += [one for one in changed if one.slug != "findings"]
    rests = provenance(document, found.environment, of_comparison.provenance_facts(found))
    return Told(
        Answer(of_comparison.headline(found), found.note, cautions=of_comparison.cautions(found)),
        told + rests,
    )


def _changed(section: Section) -> Chapter:
    pages = "overview comparison" if section.slug == "findings" else "comparison"
    rows = [Rows(section.table, is_whole=True)] if section.table is not None else []
    return Chapter(section.slug, section.title, rows, pages, how=section.how)
