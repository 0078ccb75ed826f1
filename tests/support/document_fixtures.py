"""Documents about one program, written flat: each field goes to the evidence, the diagnosis or the document itself."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pyrometer.compiler.report import CompileReport
from pyrometer.evidence.evidence import Evidence
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.record import Record
from pyrometer.report.documents import (
    CompileDocument,
    EvidenceDocument,
    MemoryDocument,
    SnapshotDocument,
    TraceDocument,
)
from pyrometer.rules.diagnosis import Diagnosis

D = TypeVar("D", bound=EvidenceDocument)
R = TypeVar("R", bound=Record)

SUBJECTS = {
    CompileDocument: ("compiled", CompileReport),
    MemoryDocument: ("memory", MemoryProfile),
    SnapshotDocument: ("snapshot", SnapshotReport),
}
"""Documents whose one subject may be written flat as well."""


def document_of(kind: type[D], **fields: Any) -> D:
    """A document; `ranks` of several are all of a job, and the first is the one that is looked at."""
    target = fields.get("target", "")
    diagnosis = Diagnosis(target=target, findings=[], reading=[])
    return changed(kind(evidence=Evidence(target=target), diagnosis=diagnosis), **fields)


def changed(document: D, **fields: Any) -> D:
    """The same document with other fields."""
    if (subject := SUBJECTS.get(type(document))) is not None:
        _gather(document, fields, *subject)
    if isinstance(document, TraceDocument) and "verdict" in fields:
        fields["trace_verdict"] = fields.pop("verdict")
    if ranks := fields.pop("ranks", None):
        fields |= {"trace": ranks[0], "ranks": ranks if len(ranks) > 1 else []}
    evidence = _with(document.evidence, fields)
    meant = {name: value for name, value in fields.items() if name != "notes"}  # what could not be observed
    diagnosis = _with(document.diagnosis, {**meant, "target": evidence.target})
    own = {
        name: value
        for name, value in fields.items()
        if name in document.__struct_fields__ and name != "ranks"
    }  # reports on ranks are part of the evidence
    unknown = fields.keys() - {*own, *Evidence.__struct_fields__, *Diagnosis.__struct_fields__}
    assert not unknown, f"no document of this kind has {unknown}"
    return msgspec.structs.replace(document, **{"evidence": evidence, "diagnosis": diagnosis, **own})


def _with(record: R, fields: dict[str, Any]) -> R:
    return msgspec.structs.replace(
        record, **{name: value for name, value in fields.items() if name in record.__struct_fields__}
    )


def _gather(document: EvidenceDocument, fields: dict[str, Any], part: str, kind: type[Record]) -> None:
    names = [name for name in kind.__struct_fields__ if name in fields]
    if names:
        values = {name: fields.pop(name) for name in names}
        before = getattr(document.evidence, part)
        fields[part] = kind(**values) if before is None else msgspec.structs.replace(before, **values)


def ranks_of(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """The reports of all ranks in a printed document about traces."""
    evidence = plain["evidence"]
    return evidence["ranks"] or [evidence["trace"]]
