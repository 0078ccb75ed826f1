"""The same as the terminal shows, as GitHub Markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.quality import Caveat
from pyrometer.compiler.report import CompileReport
from pyrometer.loading.advice import LoaderAdvice
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.advice.record import Advice
from pyrometer.report import kinds
from pyrometer.report.documents import (
    AuditDocument,
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    CompileDocument,
    EvidenceDocument,
    MatrixDocument,
    MemoryDocument,
    SnapshotDocument,
    TargetDocument,
    TraceDocument,
)
from pyrometer.report.facts import audit as of_audit
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import compile_breaks, surroundings
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Fact, Section, Table, shortened, spans
from pyrometer.report.run_documents import CompareDocument

MOST_ROWS = 40
"""Rows of a chapter's table; the document holds more."""


def render_document(kind: str, document: dict[str, Any]) -> str:
    """Render a stored document.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    record = kinds.read_document(kind, document)
    return "\n\n".join(VIEWS[kind](record)) + "\n"


def bench_blocks(document: BenchDocument) -> list[str]:
    """What `pyrometer bench` found, as blocks of Markdown."""
    blocks: list[str] = []
    if document.verdict is not None:
        blocks += _verdict_blocks(document.verdict)
    if document.measurement is not None:
        blocks += _measurement_blocks(document.measurement, document.measurement.phases)
    if document.cold is not None:
        blocks += ["### Cold starts", escape(of_cold.headline(document.cold))]
        blocks += [escape(of_cold.subtitle(document.cold)), table(of_cold.stage_table(document.cold))]
    if document.soak is not None:
        blocks += [
            "### Long run",
            escape(of_soak.headline(document.soak)),
            table(of_soak.drift_table(document.soak)),
        ]
        blocks += [caveats(document.soak.caveats, of_soak.subtitle(document.soak))]
    if document.loading is not None:
        blocks += _loading_blocks(document.loading)
    if not blocks:
        blocks.append(f"## Nothing was measured of {escape(document.target)}")
    return [*blocks, *_provenance_blocks(document)]


def check_blocks(document: CheckDocument) -> list[str]:
    """What `pyrometer check` found, as blocks of Markdown."""
    if document.measurement is None:
        blocks = [f"## No step was seen in {escape(document.target)}"]
    else:
        blocks = _measurement_blocks(document.measurement, [] if document.trace else document.phases)
    blocks[1:1] = _finding_blocks(document)
    if document.trace is not None:
        for section in of_rank.sections(document.trace, document.capture):
            blocks += section_blocks(section)
    if document.compiled is not None:
        blocks += [f"### torch.compile: {escape(of_compile.headline(document.compiled))}"]
        blocks += _compiled_blocks(document.compiled, of_compile.sections(document.compiled))
    if document.memory_profile is not None:
        profile = document.memory_profile
        blocks += [f"### Memory: {escape(of_memory.headline(profile))}"]
        blocks += _advised_blocks(profile.advice, of_memory.of_check(document))
    if document.loading is not None:
        blocks += _loading_blocks(document.loading)
    blocks += [escape(note) for note in document.notes]
    if document.script is not None:
        blocks += ["### Script", _facts(surroundings.script_facts(document.script))]
    return [*blocks, *_provenance_blocks(document)]


def _finding_blocks(document: EvidenceDocument) -> list[str]:
    blocks = [f"### {escape(of_findings.headline(document.findings))}"] if document.reading else []
    for card in of_findings.cards(document.findings):
        finding = card.finding
        blocks.append(f"#### {escape(card.title)}" + (f": {escape(card.gain)}" if card.gain else ""))
        place = f" At {escape(card.place)}." if card.place else ""
        blocks.append(f"{escape(finding.message)}{place} {escape(finding.advice.text)}")
        blocks += [code_block(finding.advice.rewrite)] if finding.advice.rewrite else []
        blocks += [_facts(card.facts)] if card.facts else []
    hidden = of_findings.suppressed_text(document.suppressed)
    blocks += [escape(hidden)] if hidden else []
    return blocks + (
        section_blocks(of_findings.reading_section(document.reading)) if document.reading else []
    )


def audit_blocks(document: AuditDocument) -> list[str]:
    """What `pyrometer audit` found, as blocks of Markdown."""
    blocks = [f"## {escape(of_audit.headline(document.audit))}", escape(of_audit.subtitle(document.audit))]
    for section in of_audit.sections(document.audit):
        blocks += section_blocks(section)
    return [*blocks, *(escape(note) for note in document.notes), *_provenance_blocks(document)]


def compare_blocks(document: CompareDocument) -> list[str]:
    """Two stored runs beside each other, as blocks of Markdown."""
    found = document.comparison
    blocks = [f"## {escape(of_comparison.headline(found))}", escape(found.note)]
    blocks += [f"- {escape(told)}" for told in of_comparison.cautions(found)]
    blocks += [table(of_comparison.side_table(found)), table(of_comparison.figure_table(found))]
    for section in of_comparison.sections(found):
        blocks += section_blocks(section)
    return [*blocks, "### To prove a difference", code_block(found.prove_with)]


def calibration_blocks(document: CalibrationDocument) -> list[str]:
    """What `pyrometer calibrate` found, as blocks of Markdown."""
    found = document.calibration
    blocks = [f"## {escape(of_calibration.headline(found))}", escape(of_calibration.subtitle(found))]
    blocks += [table(of_calibration.resolution_table(found))]
    blocks += ["### Quality", caveats(found.advice, of_calibration.trust(found))]
    if found.peaks is not None:
        blocks += ["### Peaks", table(of_calibration.peak_table(found.peaks))]
    return [*blocks, *_provenance_blocks(document)]


def matrix_blocks(document: MatrixDocument) -> list[str]:
    """What `pyrometer bench --matrix` found, as blocks of Markdown."""
    found = document.matrix
    blocks = [f"## {escape(of_matrix.headline(found))}", escape(of_matrix.subtitle(found))]
    blocks += [table(of_matrix.main_table(found)), escape(of_matrix.LEGEND)]
    blocks += [table(of_matrix.tail_table(found)), table(of_matrix.cost_table(found))]
    if found.rejected:
        blocks += ["### Not recommended", table(of_matrix.rejection_table(found))]
    return [*blocks, *_provenance_blocks(document)]


def trace_blocks(document: TraceDocument) -> list[str]:
    """What `pyrometer trace` found, as blocks of Markdown."""
    blocks = [f"## {escape(of_trace.headline(document))}", escape(of_trace.subtitle(document))]
    blocks += _finding_blocks(document) if document.findings else []
    for part in of_trace.parts(document, most_ranks=1):
        blocks += [f"## {escape(part.title)}"] if part.title else []
        for section in part.sections:
            blocks += section_blocks(section)
    return blocks


def compile_blocks(document: CompileDocument) -> list[str]:
    """What `pyrometer compile` found, as blocks of Markdown."""
    blocks = [
        f"## {escape(of_compile.document_headline(document))}",
        escape(of_compile.subtitle(document.report)),
    ]
    blocks += [f"**{escape(line)}**" for line in document.over_budget]
    return blocks + _compiled_blocks(document.report, of_compile.document_sections(document))


def _compiled_blocks(report: CompileReport, chapters: Sequence[Section]) -> list[str]:
    blocks: list[str] = []
    for card in compile_breaks.cards(report):
        blocks += [f"### {escape(card.place)}: {escape(card.title)}", escape(card.remark)]
        for rewrite in card.rewrites:
            blocks += [f"**{escape(rewrite.title)}**: {escape(rewrite.why)}"]
            blocks += [code_block(code) for code in (rewrite.after, rewrite.setting) if code]
    for section in chapters:
        blocks += section_blocks(section)
    return blocks


def code_block(code: str) -> str:
    """Python source, fenced so that nothing in it can end the fence.

    >>> print(code_block("x = 1"))
    ```python
    x = 1
    ```
    """
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code)), 3)
    return f"{fence}python\n{code}\n{fence}"


def section_blocks(section: Section) -> list[str]:
    """One chapter."""
    if section.slug in of_rank.DRAWN:
        return []
    blocks = [f"### {escape(section.title)}"]
    if section.facts:
        blocks.append(_facts(section.facts))
    if section.table is not None:
        blocks.append(table(shortened(section.table, MOST_ROWS)))
    return blocks


def memory_blocks(document: MemoryDocument) -> list[str]:
    """What `pyrometer memory` found, as blocks of Markdown."""
    blocks = [
        f"## {escape(of_memory.headline(document.profile))}",
        escape(of_memory.subtitle(document.profile)),
    ]
    blocks += [f"- **{escape(line)}**" for line in document.over_limit]
    return blocks + _advised_blocks(document.profile.advice, of_memory.document_sections(document))


def _loading_blocks(report: LoaderReport) -> list[str]:
    told = f"### Data: {escape(of_loading.headline(report))}"
    return [told, *_advised_blocks(report.advice, of_loading.sections(report))]


def snapshot_blocks(document: SnapshotDocument) -> list[str]:
    """What `pyrometer memory` read from a snapshot, as blocks of Markdown."""
    blocks = [
        f"## {escape(of_snapshot.headline(document.report))}",
        escape(of_snapshot.subtitle(document.report)),
    ]
    blocks += [f"- **{escape(line)}**" for line in document.over_limit]
    return blocks + _advised_blocks(document.report.advice, of_snapshot.document_sections(document))


def _advised_blocks(
    advice: Sequence[Advice] | Sequence[LoaderAdvice], chapters: Sequence[Section]
) -> list[str]:
    blocks = []
    for one in advice:
        blocks += [
            f"### {escape(one.title + of_memory.saving(one))}",
            escape(one.why),
            code_block(one.use),
            escape(one.effect),
        ]
    for section in chapters:
        blocks += section_blocks(section)
    return blocks


VIEWS: dict[str, Callable[[Any], list[str]]] = {
    "audit": audit_blocks,
    "bench": bench_blocks,
    "calibration": calibration_blocks,
    "check": check_blocks,
    "compare": compare_blocks,
    "compile": compile_blocks,
    "matrix": matrix_blocks,
    "memory": memory_blocks,
    "snapshot": snapshot_blocks,
    "trace": trace_blocks,
}


ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "://": ":&#47;&#47;", "www.": "www&#46;"}
"""GitHub makes tags, mentions and links by itself of what looks like one."""


def escape(text: str, *, strip: bool = True) -> str:
    r"""Text that Markdown shows as it is: no markup, no HTML, no table cell break, no mention, on one line.

    >>> escape("a|b <img> `x` *y* @you")
    'a\\|b &lt;img&gt; \\`x\\` \\*y\\* &#64;you'
    """
    flat = re.sub(r"\s+", " ", text.strip() if strip else text)
    escaped = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", flat.replace("&", "&amp;"))
    # What would begin a list or a rule, were it the beginning of a line.
    escaped = re.sub(r"^(\d{0,9})([-+.)=])(?=[-=\s]|$)", r"\1\\\2", escaped)
    for markup, shown in ENTITIES.items():
        escaped = escaped.replace(markup, shown)
    return escaped


def table(content: Table) -> str:
    """A table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(escape(column) for column in content.columns) + " |"]
    sides = [
        ":---" if not index or index in content.words else "---:" for index in range(len(content.columns))
    ]
    lines.append("| " + " | ".join(sides) + " |")
    lines += ["| " + " | ".join(escape(cell) for cell in row) + " |" for row in content.rows]
    return "\n".join(lines)


def caveats(items: Sequence[Caveat], trust: str) -> str:
    """Reservations with what to do next, or why there are none."""
    lines = [f"- **{escape(item.message)}**: {_hint(item.hint)}" for item in items]
    return "\n".join(lines) if lines else escape(trust)


def _measurement_blocks(m: Measurement, phases: Sequence[PhaseTime]) -> list[str]:
    blocks = [f"## {escape(of_measurement.headline(m))}", escape(of_measurement.subtitle(m))]
    if phases:
        blocks += ["### Where the step goes", table(of_measurement.phase_table(phases))]
    spread = of_measurement.spread(m)
    due = of_measurement.deadline(m)
    blocks += [
        "### Latency",
        table(of_measurement.latency_table(m)),
        _facts(spread if due is None else [*spread, due]),
    ]
    blocks += ["### Cold and steady", _facts([*of_measurement.cold(m), *of_measurement.work(m)])]
    if m.memory is not None:
        blocks += ["### Memory", _facts(of_measurement.memory_facts(m.memory))]
    return [*blocks, "### Quality", caveats(m.warnings, of_measurement.trust(m))]


def _verdict_blocks(v: Verdict) -> list[str]:
    blocks = [f"## {escape(of_verdict.headline(v))}", escape(of_verdict.subtitle(v))]
    blocks += [table(of_verdict.ratio_table(v)), _facts(of_verdict.side_facts(v))]
    blocks += ["### Quality", caveats(v.caveats, of_verdict.trust(v))]
    if v.reference is not None:
        blocks += [
            "### Textbook statistics, not used for the verdict",
            table(of_verdict.reference_table(v.reference)),
        ]
    return blocks


def _provenance_blocks(document: TargetDocument | EvidenceDocument) -> list[str]:
    known = document.environment
    machine = [] if known is None else [escape(surroundings.environment_line(known))]
    return ["### Machine", *machine, _facts(surroundings.provenance_facts(document))]


def _hint(text: str) -> str:
    return "".join(
        "`" + part.replace("|", "\\|") + "`" if code else escape(part, strip=False)
        for part, code in spans(text)
    )


def _facts(facts: Sequence[Fact]) -> str:
    return " · ".join(f"{escape(fact.label)} **{escape(fact.value)}**{_note(fact)}" for fact in facts)


def _note(fact: Fact) -> str:
    return f" ({escape(fact.note)})" if fact.note else ""
