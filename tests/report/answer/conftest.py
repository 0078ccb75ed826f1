"""Documents of every verb, from recorded programs: nothing is measured."""

from __future__ import annotations

import msgspec
import pytest

from pyrometer.report.documents import (
    AuditDocument,
    BenchDocument,
    CompileDocument,
    Document,
    MemoryDocument,
    TraceDocument,
)
from pyrometer.rules.explain import explain
from recorded import CHECKED, FILES, JOBS, checked, evidence_of

VARIANTS = [("rows", "workload")] + [
    (program, variant) for program in CHECKED for variant in ("workload", "fixed") if program not in {"rows", "broken_perception"}
] + [("broken_perception", "workload")]  # fmt: skip


def audited(program: str, variant: str = "workload") -> AuditDocument:
    evidence = evidence_of(program, variant)
    return AuditDocument(evidence=evidence, diagnosis=explain(evidence, (FILES[program],), with_audit=True))


def of_verb(verb: str, program: str, variant: str = "workload") -> Document:
    """The document of a verb that sees a part of what a check saw."""
    document = checked(program, variant)
    if verb == "check":
        return document
    if verb == "audit":
        return audited(program, variant)
    kinds = {
        "bench": BenchDocument,
        "compile": CompileDocument,
        "memory": MemoryDocument,
        "trace": TraceDocument,
    }
    evidence = document.evidence
    if verb == "trace":
        evidence = msgspec.structs.replace(evidence, measurement=None)
    family = {"compile": "PYR4", "memory": "PYR2"}.get(verb, "PYR")
    findings = [finding for finding in document.diagnosis.findings if finding.code.startswith(family)]
    return kinds[verb](
        evidence=evidence, diagnosis=msgspec.structs.replace(document.diagnosis, findings=findings)
    )


@pytest.fixture(scope="session")
def recorded_documents() -> dict[str, Document]:
    """By verb and program."""
    made = {f"check {program} {variant}": of_verb("check", program, variant) for program, variant in VARIANTS}
    for verb, kind in {
        "bench": "measurement",
        "trace": "trace",
        "memory": "memory",
        "compile": "compiled",
    }.items():
        for program, variant in VARIANTS:
            if evidence_of(program, variant).has(kind):
                made[f"{verb} {program} {variant}"] = of_verb(verb, program, variant)
    made |= {
        f"audit {program}": audited(program) for program in ("tiny_ops", "slow_loader", "broken_perception")
    }
    for when in JOBS:
        evidence = evidence_of("job", when)
        made[f"trace job {when}"] = TraceDocument.of(evidence, explain(evidence, (FILES["job"],)))
    return made
