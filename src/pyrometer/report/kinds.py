"""The kinds of documents that can be looked at again, each with its record type.

A new kind is added here and in `chapters.documents`.
"""

from __future__ import annotations

from typing import Any

from pyrometer.document import SCHEMA_VERSION
from pyrometer.errors import InputError
from pyrometer.guard.exchange.past import PastPoint
from pyrometer.guard.gate import GuardReport
from pyrometer.monitor.logs.record import LogAnalysis
from pyrometer.record import from_dict
from pyrometer.report.documents import (
    AuditDocument,
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    CompareDocument,
    CompileDocument,
    Document,
    GuardHistoryDocument,
    MatrixDocument,
    MemoryDocument,
    RolloutDocument,
    ScaleDocument,
    SnapshotDocument,
    TraceDocument,
    TuneDocument,
)

DOCUMENTS: dict[str, type[Document]] = {
    "audit": AuditDocument,
    "bench": BenchDocument,
    "calibration": CalibrationDocument,
    "check": CheckDocument,
    "compare": CompareDocument,
    "compile": CompileDocument,
    "guard": GuardReport,
    "guard-past": PastPoint,
    "guard-proof": GuardReport,
    "guard-record": GuardReport,
    "guard-history": GuardHistoryDocument,
    "logs": LogAnalysis,
    "matrix": MatrixDocument,
    "memory": MemoryDocument,
    "rollout": RolloutDocument,
    "scale": ScaleDocument,
    "snapshot": SnapshotDocument,
    "trace": TraceDocument,
    "tune": TuneDocument,
}


def read_document(kind: str, document: dict[str, Any]) -> Document:
    """Turn a stored document back into its record.

    Raises:
        InputError: the kind is unknown, a newer Pyrometer wrote the document, or it does not fit its kind.
    """
    if kind not in DOCUMENTS:
        raise InputError(f"{kind!r} is not a kind of document; there are {', '.join(DOCUMENTS)}")
    version = document.get("schema_version", SCHEMA_VERSION)
    if version > SCHEMA_VERSION:
        raise InputError(
            f"this {kind} has schema version {version}, and this Pyrometer reads up to {SCHEMA_VERSION}; "
            "upgrade Pyrometer to look at it"
        )
    return from_dict(DOCUMENTS[kind], document)


def kind_of(document: Document) -> str:
    """The kind of a document.

    Raises:
        InputError: no kind has this record type.
    """
    for kind, record in DOCUMENTS.items():
        if type(document) is record:
            return kind
    raise InputError(f"{type(document).__name__} is not a kind of document; there are {', '.join(DOCUMENTS)}")
