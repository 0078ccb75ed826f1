"""Documents of earlier schemas as those of today: keys move, values stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Plain = dict[str, Any]

HEAD = ("tool_version", "run_id", "created", "command")
EVIDENCE = (
    "target", "environment", "measurement", "script", "trace", "trace_verdict", "capture", "job", "compiled", "loading",
    "program", "numerics", "notes",
)  # fmt: skip
DIAGNOSIS = ("findings", "reading", "suppressed")
ASKED = {
    "bench": ("versus", "verdict", "cold", "soak"),
    "check": ("report_path",),
    "audit": (),
    "trace": ("diff",),
    "compile": ("over_budget", "divergence", "shapes", "diff"),
    "memory": ("over_limit", "what_if", "plan", "diff"),
    "snapshot": ("over_limit", "diff"),
}
"""What a document says beside its evidence, by kind; other kinds are as they were."""

WHOLE = {"compile": "compiled", "memory": "memory", "snapshot": "snapshot"}
"""Kinds whose documents were one record in schema 1, and the part of the evidence that it is now."""


def upgraded(kind: str, document: Plain) -> Plain:
    """A stored document in the schema of today.

    >>> upgraded("check", {"schema_version": 1, "target": "m.py:f", "phases": [], "findings": []})["evidence"]
    {'target': 'm.py:f'}
    """
    if document.get("schema_version") != 1:
        return document
    document = _caveats(document)
    if kind not in ASKED:
        return document
    asked = ASKED[kind]
    evidence = _taken(document, EVIDENCE)
    diagnosis: Plain = {"target": evidence.get("target", ""), "findings": [], "reading": []}
    diagnosis |= _taken(document, DIAGNOSIS)
    diagnosis["findings"] = [_finding(plain) for plain in diagnosis["findings"]]
    beside = _taken(document, asked)
    if kind in WHOLE:
        known = {"schema_version", "target", "environment", *HEAD, *asked}
        evidence = _taken(document, ("target", "environment"))
        evidence[WHOLE[kind]] = {key: value for key, value in document.items() if key not in known}
    elif kind == "audit":
        diagnosis["audit"] = document
        diagnosis["score"] = document.get("score")
    elif kind == "trace":
        evidence, beside = _of_trace(document, evidence, beside)
    elif document.get("memory_profile") is not None:
        evidence["memory"] = document["memory_profile"]
    for part in ("memory", "snapshot", "loading"):
        if evidence.get(part):  # their advice was of other kinds, and the findings say the same
            evidence[part] = {**evidence[part], "advice": []}
    head = _taken(document, HEAD)
    return {"schema_version": 2, **head, "evidence": evidence, "diagnosis": diagnosis, **beside}


def _of_trace(document: Plain, evidence: Plain, beside: Plain) -> tuple[Plain, Plain]:
    ranks, verdict = document.get("ranks") or [], document.get("verdict")
    if beside.get("diff") is not None and len(ranks) == 2:
        return {**evidence, "trace": ranks[1]}, {**beside, "before": ranks[0]}
    about = verdict["rank"] if verdict else None
    looked_at = next((rank for rank in ranks if rank.get("rank") == about), ranks[0] if ranks else None)
    several = ranks if len(ranks) > 1 else []
    return {**evidence, "trace": looked_at, "trace_verdict": verdict, "ranks": several}, beside


def _caveats(plain: Any) -> Any:
    """All of a document, with what to do about its reservations as advice: it was a sentence."""
    if isinstance(plain, list):
        return [_caveats(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {"code", "message", "hint"}:
        advice = {"slug": plain["code"], "title": plain["hint"], "fix_class": "exact"}
        return {"code": plain["code"], "message": plain["message"], "advice": advice}
    return {key: _caveats(value) for key, value in plain.items()}


def _finding(plain: Plain) -> Plain:
    """A finding whose advice was a sentence, with what belongs to it beside it."""
    advice = {"slug": plain["name"], "title": plain["advice"], "gain": plain.get("predicted_gain")}
    advice |= _taken(plain, ("fix_class", "lever", "rewrite"))
    links = [link.replace("/memory_profile/", "/memory/", 1) for link in plain.get("links", [])]
    return {**plain, "advice": advice, "links": links}


def _taken(document: Plain, keys: Iterable[str]) -> Plain:
    return {key: document[key] for key in keys if key in document}
