"""torch's registry of graph breaks: what each stable id means, in the words of its developers.

`torch/_dynamo/graph_break_registry.json` exists since torch 2.8. Ids are never given to another kind of break; a kind whose
text was changed keeps its older texts beside the newest, which stands first.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

FILE = "_dynamo/graph_break_registry.json"


class Registered(NamedTuple):
    """One kind of break."""

    id: str
    """As torch writes it in links: gb0170."""
    reason: str
    explanation: str
    """A template: braces stand for what differs from break to break."""
    hints: tuple[str, ...]


def by_id(gb_id: str) -> Registered | None:
    """The kind with an id such as `gb0170`; `None` when this torch does not know it.

    >>> by_id("gb0170").reason if not missing() else "Data-dependent branching"
    'Data-dependent branching'
    """
    kinds = _kinds().get(gb_id.lower())
    return kinds[0] if kinds else None


def by_reason(reason: str) -> Registered | None:
    """The kind with a one-line reason, older wordings included; `None` when there is none."""
    return _by_reason().get(reason.strip())


def missing() -> list[str]:
    """What this torch does not have of this, in words."""
    return [] if _kinds() else ["registry of graph breaks: this torch has no graph_break_registry.json"]


@lru_cache(maxsize=1)
def _kinds() -> dict[str, tuple[Registered, ...]]:
    spec = find_spec("torch")
    folders = (spec.submodule_search_locations if spec is not None else None) or []
    file = next((Path(folder, FILE) for folder in folders if Path(folder, FILE).is_file()), None)
    if file is None:
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # as good as absent; `missing` says so
        return {}
    return {
        key.lower(): tuple(_registered(key.lower(), kind) for kind in kinds)
        for key, kinds in content.items()
        if isinstance(kinds, list) and kinds and all(isinstance(kind, dict) for kind in kinds)
    }


@lru_cache(maxsize=1)
def _by_reason() -> dict[str, Registered]:
    found: dict[str, Registered] = {}
    for kinds in _kinds().values():
        for kind in kinds:
            found.setdefault(kind.reason, kind)
    return found


def _registered(gb_id: str, kind: dict[str, Any]) -> Registered:
    hints = kind.get("Hints")
    return Registered(
        gb_id,
        str(kind.get("Gb_type", "")).strip(),
        str(kind.get("Explanation", "")),
        tuple(str(hint) for hint in hints) if isinstance(hints, list) else (),
    )
