"""Findings as JUnit's XML, in which test servers list failures."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree as ET

from pyrometer.rules.lint.habits import told
from pyrometer.rules.lint.result import LintFinding, LintResult

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(result: LintResult) -> str:
    """A suite per file with findings, a failed case per finding; one case that passes where there are none."""
    total = len(result.findings)
    root = ET.Element("testsuites", name="pyrometer lint", tests=str(total or 1), failures=str(total))
    for file, group in groupby(result.findings, key=lambda finding: finding.file):
        findings = list(group)
        number = str(len(findings))
        suite = ET.SubElement(root, "testsuite", name=_text(file), tests=number, failures=number)
        for finding in findings:
            _add_case(suite, finding)
    if not result.findings:
        suite = ET.SubElement(root, "testsuite", name="pyrometer lint", tests="1", failures="0")
        ET.SubElement(suite, "testcase", name="no findings", classname="pyrometer lint")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_case(suite: ET.Element, finding: LintFinding) -> None:
    name, file = f"{finding.code} {finding.name}", _text(finding.file)
    case = ET.SubElement(suite, "testcase", name=name, classname=file, line=str(finding.line))
    failure = ET.SubElement(case, "failure", type=finding.severity, message=_text(told(finding)))
    failure.text = _text(f"{finding.place}: {told(finding)}\n{finding.advice}".rstrip())


def _text(text: str) -> str:
    """A text as XML may hold it: other control characters are escaped."""
    return _NOT_IN_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
