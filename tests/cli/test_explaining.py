"""A verb that asks one question gets no answers to others."""

from __future__ import annotations

import pytest

from pyrometer.cli.explaining import explainer
from pyrometer.workload.target import parse_target
from recorded import FILES, evidence_of


def codes(verb: str, *kinds: str) -> set[str]:
    evidence = evidence_of("broken_perception")
    only = type(evidence)(target=evidence.target, **{kind: getattr(evidence, kind) for kind in kinds})
    explained = explainer(verb, parse_target(f"{FILES['broken_perception']}:workload", ()))
    return {finding.code for finding in explained(only).findings}


@pytest.mark.parametrize(("verb", "families"), [("memory", {"PYR2"}), ("compile", {"PYR4", "PYR7"})])
def test_a_verb_about_one_thing_leaves_out_what_only_the_source_shows_of_others(
    verb: str, families: set[str]
) -> None:
    kinds = {"memory": ("memory", "program"), "compile": ("compiled", "program")}[verb]
    assert {code[:4] for code in codes(verb, *kinds)} <= families
    assert "PYR509" in codes("check", *kinds)
