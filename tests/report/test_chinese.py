# ruff: noqa: RUF001 - Chinese is written with its own punctuation
"""Sentences in Chinese: patterns with figures and names, and parts that are put together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from representative import every

from pyrometer.report.chinese import _pairs, chinese
from pyrometer.trace.difference import comparability
from pyrometer.trace.difference.change import change
from pyrometer.trace.difference.compare import ALIKE, NOTE, PAUSES, SAME_TRACE, decide
from pyrometer.tuning.levers import families
from recorded import CHECKED, checked, page_of

ODD = np.array([100.0, 130.0, 90.0, 160.0, 80.0, 120.0]) * 1e6
"""Times of steps that scatter."""


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


def _reasons() -> Iterator[str]:
    """What levers say of why they are not tried or not in force, with a figure in each of its places."""
    for path in Path(families.__path__[0]).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for function in functions:
            if function.name not in {"refuses", "refuses_loader", "not_applied", "uncompilable"}:
                continue
            returned = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
            for text in (part for node in returned for part in _texts(node.value)):
                if text.count(" ") > 1:
                    yield text


def _circumstances() -> Iterator[str]:
    """In which two traces may differ, by themselves and as what withholds a verdict."""
    tree = ast.parse(Path(comparability.__file__).read_text(encoding="utf-8"))
    messages = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "message"
    ]
    for text in (part for message in messages for part in _texts(message)):
        yield from (text, f"undecided: {text} (7 against 8)")


VERDICTS = (
    SAME_TRACE,
    NOTE,
    *(f"undecided: 1.3× faster (1.2–1.4), {doubt}" for doubt in (PAUSES, ALIKE)),
    *(decide(change(ODD, ODD * 1.1), margin, (6, 6))[1] for margin in (0.1, 2.0)),
    *(decide(change(ODD[:2], other), 0.1, (2, 2))[1] for other in (ODD[:2], ODD[:2] * 0)),
)


def test_what_became_of_a_trace_is_said_in_chinese():
    circumstances = sorted(set(_circumstances()))
    assert len(circumstances) > 16
    assert [text for text in (*circumstances, *VERDICTS) if not _is_chinese(chinese(text))] == []


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "12" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for part in ast.iter_child_nodes(node):
            yield from _texts(part)


def test_why_a_lever_is_not_tried_is_said_in_chinese():
    reasons = sorted(set(_reasons()))
    assert len(reasons) > 80
    assert [text for text in reasons if not _is_chinese(chinese(text))] == []


def _is_chinese(said: str | None) -> bool:
    """Whether no English clause is left in a sentence: names of functions and modules may be."""
    return said is not None and re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", said) is None
