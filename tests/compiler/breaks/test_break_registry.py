"""torch's registry of breaks, through our adapter."""

from __future__ import annotations

import pytest

from pyrometer.compiler.private import break_registry
from pyrometer.compiler.private.break_registry import by_id, by_reason, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason="this torch has no registry")


def test_ids_and_reasons_lead_to_the_same_kind() -> None:
    kind = by_id("gb0170")
    assert kind is not None
    assert kind.reason == "Data-dependent branching"
    assert kind.explanation
    assert by_id("GB0170") == by_reason(" Data-dependent branching ") == kind


def test_older_wordings_are_found_under_their_id() -> None:
    kind = by_reason("Dynamo cache limit exceeded")
    assert kind is not None
    assert kind.id == "gb0039"
    newest = by_id("gb0039")
    assert newest is not None
    assert newest.reason == "Dynamo recompile limit exceeded"


def test_unknown_ones_are_none() -> None:
    assert by_id("gb9999999") is None
    assert by_reason("no such break") is None


def test_a_torch_without_the_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(break_registry, "FILE", "_dynamo/no_such_file.json")
    for cached in (break_registry._kinds, break_registry._by_reason):
        cached.cache_clear()
    try:
        assert missing() == ["registry of graph breaks: this torch has no graph_break_registry.json"]
        assert (by_id("gb0170"), by_reason("Data-dependent branching")) == (None, None)
    finally:
        for cached in (break_registry._kinds, break_registry._by_reason):
            cached.cache_clear()
