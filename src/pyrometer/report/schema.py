"""JSON Schemas of everything that `--json` prints, generated from the record types; kept in `docs/schemas/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.report.documents import (
    AuditDocument,
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    CompileDocument,
    Document,
    EnvironmentDocument,
    MatrixDocument,
    MemoryDocument,
    SnapshotDocument,
    TraceDocument,
)
from pyrometer.report.run_documents import CompareDocument, PruneDocument, RulesDocument, RunsDocument

DOCUMENTS: dict[str, type[Document]] = {
    "audit": AuditDocument,
    "bench": BenchDocument,
    "bench-matrix": MatrixDocument,
    "calibrate": CalibrationDocument,
    "check": CheckDocument,
    "compare": CompareDocument,
    "compile": CompileDocument,
    "env": EnvironmentDocument,
    "memory": MemoryDocument,
    "memory-snapshot": SnapshotDocument,
    "prune": PruneDocument,
    "rule": RulesDocument,
    "runs": RunsDocument,
    "trace": TraceDocument,
}
"""What each verb prints; after a dash, with which flag."""


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document that a verb prints.

    >>> schema_of("check")["title"]
    'pyrometer check --json'
    """
    (reference,), parts = msgspec.json.schema_components([DOCUMENTS[verb]], ref_template="#/$defs/{name}")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"pyrometer {verb.replace('-', ' --')} --json",
    }
    return {**head, **reference, "$defs": parts}


def schema_text(verb: str) -> str:
    """The schema as it lies in the repository."""
    return json.dumps(schema_of(verb), indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> list[Path]:
    """Write one schema per verb."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{verb}.json" for verb in DOCUMENTS]
    for path in paths:
        path.write_text(schema_text(path.stem), encoding="utf-8")
    return paths
