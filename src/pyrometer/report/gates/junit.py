"""Gates as JUnit XML, which every CI system shows: a suite, with a case for each gate."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.report.facts import guard as of_guard


def junit_of(report: GuardReport) -> bytes:
    """A regression is a failure, an undecided gate is skipped, a benchmark that failed is an error."""
    suite = ET.Element(
        "testsuite",
        name="pyrometer guard",
        tests=str(len(report.gates) + len(report.missed)),
        failures=str(sum(_fails(report, gate) for gate in report.gates)),
        errors=str(sum(miss.failed and miss.side == "head" for miss in report.missed)),
        skipped=str(sum(_is_skipped(report, gate) for gate in report.gates)),
        time=f"{report.elapsed_s:.3f}",
    )
    for gate in report.gates:
        case = ET.SubElement(suite, "testcase", classname=_plain(gate.benchmark), name=gate.metric)
        told = f"{of_guard.change(gate)}: {of_guard.figure(gate, gate.base)} → {of_guard.figure(gate, gate.head)}"
        if _fails(report, gate):
            failure = ET.SubElement(case, "failure", message=_plain(told), type=gate.kind)
            failure.text = _plain("\n".join(of_guard.why_lines([gate])))
        elif _is_skipped(report, gate):
            ET.SubElement(case, "skipped", message=_plain(f"{gate.outcome}: {told}"))
    for miss in report.missed:
        case = ET.SubElement(suite, "testcase", classname=_plain(miss.benchmark), name="comparison")
        tag = "error" if miss.failed and miss.side == "head" else "skipped"
        ET.SubElement(case, tag, message=_plain(miss.reason))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written


def _fails(report: GuardReport, gate: Gate) -> bool:
    return report.trusted and gate.outcome == "regressed"


def _is_skipped(report: GuardReport, gate: Gate) -> bool:
    return gate.outcome == "undecided" or (gate.outcome == "regressed" and not report.trusted)


def _plain(text: str) -> str:
    """Without characters that XML has no place for."""
    return "".join(sign for sign in text if sign in "\t\n" or " " <= sign < "\ud800" or sign >= "\ue000")
