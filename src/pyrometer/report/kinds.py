"""The kinds of documents that can be looked at again, each with its record type.

A new kind is added here and in `chapters.documents`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec

from pyrometer.document import SCHEMA_VERSION, Document
from pyrometer.errors import InputError
from pyrometer.record import R, from_dict

DOCUMENTS: Mapping[str, str] = MappingProxyType({
    "audit": "pyrometer.report.documents:AuditDocument",
    "bench": "pyrometer.report.documents:BenchDocument",
    "calibration": "pyrometer.report.target_documents:CalibrationDocument",
    "check": "pyrometer.report.documents:CheckDocument",
    "compare": "pyrometer.report.history_documents:CompareDocument",
    "compile": "pyrometer.report.documents:CompileDocument",
    "guard": "pyrometer.guard.gate:GuardReport",
    "guard-past": "pyrometer.guard.exchange.past:PastPoint",
    "guard-proof": "pyrometer.guard.gate:GuardReport",
    "guard-record": "pyrometer.guard.gate:GuardReport",
    "guard-history": "pyrometer.report.history_documents:GuardHistoryDocument",
    "logs": "pyrometer.monitor.logs.record:LogAnalysis",
    "matrix": "pyrometer.report.target_documents:MatrixDocument",
    "memory": "pyrometer.report.documents:MemoryDocument",
    "rollout": "pyrometer.report.history_documents:RolloutDocument",
    "scale": "pyrometer.report.target_documents:ScaleDocument",
    "snapshot": "pyrometer.report.documents:SnapshotDocument",
    "trace": "pyrometer.report.documents:TraceDocument",
    "tune": "pyrometer.tuning.outcome:Tuning",
})  # fmt: skip
"""Kind of document: its record type, imported when one of the kind is read."""


def record_type(kind: str) -> type[Document]:
    """The record type of a kind."""
    found: type[Document] = resolve_name(DOCUMENTS[kind])
    return found


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
    found = record_type(kind)
    try:
        return _by_parts(found, document) if "evidence" in document else from_dict(found, document)
    except (msgspec.MsgspecError, TypeError):
        return from_dict(found, document)  # which says what does not fit


def _by_parts(kind: type[R], plain: dict[str, Any]) -> R:
    """A record part by part: to resolve the types of all that could be observed takes longer than to read what was."""
    types = get_type_hints(kind, include_extras=True)
    held = {name: plain[name] for name in kind.__struct_fields__ if plain.get(name) is not None}
    return kind(
        **{
            name: _by_parts(types[name], value)
            if name == "evidence"
            else msgspec.convert(value, type=types[name])
            for name, value in held.items()
        }
    )


def kind_of(document: Document) -> str:
    """The kind of a document.

    Raises:
        InputError: no kind has this record type.
    """
    for kind, home in DOCUMENTS.items():
        if home == _home(document):
            return kind
    raise InputError(f"{type(document).__name__} is not a kind of document; there are {', '.join(DOCUMENTS)}")


def is_document(record: Any) -> bool:
    """Whether a record is a document of some kind."""
    return _home(record) in DOCUMENTS.values()


def _home(record: Any) -> str:
    return f"{type(record).__module__}:{type(record).__qualname__}"
