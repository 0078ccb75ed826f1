"""Every kind of document, and what tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from pyrometer.report import kinds
from pyrometer.report.chapters.chapter import Told
from pyrometer.report.documents import Document

TELLERS: Mapping[str, str] = MappingProxyType({
    "audit": "audit:tell",
    "bench": "bench:tell",
    "calibration": "calibration:tell",
    "check": "check:tell",
    "compare": "compare:tell",
    "compile": "compile:tell",
    "guard": "guard:tell",
    "guard-past": "guard_history:tell_past",
    "guard-proof": "guard:tell",
    "guard-record": "guard:tell",
    "guard-history": "guard_history:tell",
    "logs": "logs:tell",
    "matrix": "matrix:tell",
    "memory": "memory:tell",
    "rollout": "rollout:tell",
    "scale": "scale:tell",
    "snapshot": "memory:tell_snapshot",
    "trace": "trace:tell",
    "tune": "tune:tell",
})  # fmt: skip
"""Kind of document: what tells it, imported when one of the kind is told."""


def tell(document: Document) -> Told:
    """A document in words, for any renderer.

    Raises:
        InputError: no kind has this record type.
    """
    return _teller(kinds.kind_of(document))(document)


def tell_stored(kind: str, document: dict[str, Any]) -> Told:
    """The same of a stored document.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    record = kinds.read_document(kind, document)
    return _teller(kind)(record)


def _teller(kind: str) -> Callable[[Document], Told]:
    teller: Callable[[Document], Told] = resolve_name(f"pyrometer.report.chapters.{TELLERS[kind]}")
    return teller
