# ruff: noqa: RUF001 - Chinese is written with its own punctuation
"""Sentences in Chinese: patterns with figures and names, and parts that are put together."""

from __future__ import annotations

import re

import pytest
from representative import every

from pyrometer.report.chinese import _pairs, chinese
from recorded import CHECKED, checked, page_of


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("CPU-bound: operators take 77 % of each step", "CPU受限：算子占一步的 77 %"),
        ("Rank 2 makes the others wait 332 ms", "rank 2 让其他 rank 等待 332 ms"),
        ("70.6 ms per step", "每步 70.6 ms"),
        ("1.42× faster (1.38–1.46)", "提速至 1.42×（1.38–1.46）"),
        ("peak 14.9 MiB in forward · 56 % temporaries", "峰值 14.9 MiB，在前向 · 56 % 为临时张量"),
        ("BrokenPerception · as written", "BrokenPerception · 原样"),
        ("no leak in 60 steps; a word that nobody translated", None),
        ("aten::mm", None),
    ],
)
def test_a_sentence_is_known_as_a_whole_or_not_at_all(english, said):
    assert chinese(english) == said


def test_every_slot_of_a_sentence_is_filled_in_chinese():
    for english, said in _pairs():
        slots = set(re.findall(r"\{\w\}", english))
        assert set(re.findall(r"\{\w\}", said)) == slots, english
        assert "快 {" not in said, said


@pytest.mark.parametrize("program", CHECKED)
def test_what_to_do_first_is_said_in_chinese(program):
    findings = [finding for finding in checked(program).diagnosis.findings if finding.severity != "info"]
    for finding in findings:
        assert chinese(finding.message) is not None, finding.message
        assert chinese(finding.advice.text) is not None, finding.advice.text


@pytest.mark.parametrize("program", every(3, CHECKED))
def test_a_page_begins_with_a_short_sentence(program):
    page = page_of(program)
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)
    assert heading is not None
    assert 0 < len(heading[1]) <= 60
