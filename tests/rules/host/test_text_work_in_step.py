"""PYR123: regular expressions in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR123"
Sampled = Callable[..., Case]


STEP = """
def encode(texts):
    return [[VOCABULARY.get(word, 0) for word in re.findall(r"[a-z]+", text)] for text in texts]
"""


def test_texts_that_are_searched_in_each_step_are_told(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(STEP, {3: {"regex re.findall": 0.4, "python python": 0.3}}))
    assert finding.where.line == 3
    assert finding.cost is not None
    assert finding.cost.share == pytest.approx(0.4)


def test_little_of_it_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, sampled(STEP, {3: {"regex re.findall": 0.1}})) == []


def test_texts_that_come_again_are_searched_once(run: Callable[..., dict[str, Any]]) -> None:
    import functools
    import re

    class Counted:
        searches = 0

        def findall(self, pattern: str, text: str) -> list[str]:
            self.searches += 1
            return re.findall(pattern, text)

    def encoded(heading: str) -> tuple[list[Any], int]:
        counted, given = Counted(), []
        loader = [(["a b", "b c a"], 0)] * 5
        vocabulary = {"a": 1, "b": 2}
        run(
            CODE,
            heading,
            loader=loader,
            re=counted,
            functools=functools,
            VOCABULARY=vocabulary,
            train_step=lambda ids, _: given.append(ids),
        )
        return given, counted.searches

    before, after = encoded("Example"), encoded("Use instead")
    assert after[0] == before[0]
    assert (before[1], after[1]) == (10, 2)
