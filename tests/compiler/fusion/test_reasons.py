"""Inductor's reasons in plain words."""

from __future__ import annotations

import inspect
import re

import pytest

from pyrometer.compiler.fusion.reasons import REASONS, explain_reason
from pyrometer.compiler.private.refusals import without_arguments


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("no shared data", "nothing in common"),
        ("no shared data due to indexing mismatch", "different order"),
        ("numel/rnumel mismatch (reduce) (64, 32), (64, 16)", "different numbers of elements"),
        ("node2 is extern or nop", "ready-made"),
        ("prologue fusion turned off", "switched off"),
    ],
)
def test_a_known_reason_is_told_in_plain_words(reason, word):
    assert word in explain_reason(reason).meaning


def test_an_unknown_reason_is_passed_on_as_it_is():
    assert explain_reason("something new (3)") == ("something new (3)", "")


def test_no_reason_is_hidden_by_one_before_it():
    beginnings = [beginning for beginning, _ in REASONS]
    for position, beginning in enumerate(beginnings):
        assert not any(beginning.startswith(earlier) for earlier in beginnings[:position]), beginning


def test_every_reason_that_this_torchs_scheduler_gives_is_known():
    from torch._inductor import choices, scheduler
    from torch._inductor.codegen import simd

    given = re.compile(r"\b(?:why|WhyNoFuse\(node1, node2\))\(\s*\"([^\"]+)\"")
    reasons = {
        reason for module in (scheduler, choices, simd) for reason in given.findall(inspect.getsource(module))
    }
    assert len(reasons) > 30
    unknown = {reason for reason in reasons if explain_reason(reason).meaning == reason}
    assert unknown == set()


def test_arguments_do_not_count_as_another_reason():
    assert without_arguments("tiling mismatch (%s, %s, %s)") == "tiling mismatch"
    assert without_arguments("node1 is nop") == "node1 is nop"
