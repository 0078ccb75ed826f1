"""JSON Schemas of everything that `--json` prints, generated from the record types; kept in `docs/schemas/`."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import msgspec

from pyrometer.monitor.live.record import LiveDocument
from pyrometer.report import kinds
from pyrometer.report.documents import Document, EnvironmentDocument
from pyrometer.report.lever_list import LeversDocument
from pyrometer.report.plan import PlanDocument
from pyrometer.report.run_documents import PruneDocument, RunsDocument
from pyrometer.report.tuned_predictions import PredictionsDocument
from pyrometer.rules.catalogue import RulesDocument

VERBS = {
    "calibration": "calibrate",
    "logs": "monitor-analyze",
    "matrix": "bench-matrix",
    "rollout": "rollout-status",
    "snapshot": "memory-snapshot",
}
"""What prints a kind of document that is not called after its verb."""

_STORED = {
    VERBS.get(kind, kind): kinds.record_type(kind)
    for kind in kinds.DOCUMENTS
    if kind not in {"guard-past", "guard-proof", "guard-record"}
}
_OTHERS: dict[str, type[Document]] = {
    "env": EnvironmentDocument,
    "monitor-live": LiveDocument,
    "predictions": PredictionsDocument,
    "prune": PruneDocument,
    "rule": RulesDocument,
    "runs": RunsDocument,
    "serve-plan": PlanDocument,
    "tune-list": LeversDocument,
}
DOCUMENTS = dict(sorted({**_STORED, **_OTHERS}.items()))
"""What each verb prints; after a dash, with which flag."""


DEFINITIONS = "definitions.json"
"""The records that the documents hold; their schemas refer to it."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(verb: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document that a verb prints, in one piece.

    >>> schema_of("check")["title"]
    'pyrometer check --json'
    """
    (reference,), parts = _components(DOCUMENTS[verb])
    return {**_head(verb), **reference, "$defs": parts}


def schema_texts() -> dict[str, str]:
    """The schemas as they lie in the repository, by file: one per verb, and the records that they share once."""
    references, parts = _components(*DOCUMENTS.values())
    files: dict[str, Any] = {
        DEFINITIONS: {"$schema": _DIALECT, "title": "records of pyrometer", "$defs": parts}
    }
    for verb, reference in zip(DOCUMENTS, references, strict=True):
        files[f"{verb}.json"] = {**_head(verb), "$ref": DEFINITIONS + reference["$ref"]}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in files.items()}


def write_schemas(folder: Path) -> list[Path]:
    """Write one schema per verb, and the one that they share."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {folder / name: text for name, text in schema_texts().items()}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _components(*documents: type[Document]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    references, parts = msgspec.json.schema_components(documents, ref_template="#/$defs/{name}")
    return references, {name: _described(part) for name, part in parts.items()}


def _described(part: dict[str, Any]) -> dict[str, Any]:
    """A record whose description begins its lines alike, whichever Python and msgspec took it from the docstring."""
    if description := part.get("description"):
        return {**part, "description": inspect.cleandoc(description)}
    return part


def _head(verb: str) -> dict[str, Any]:
    return {"$schema": _DIALECT, "title": f"pyrometer {verb.replace('-', ' --')} --json"}
