"""PYR129: non-maximum suppression in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.explain import diagnose_case
from pyrometer.rules.finding import Finding

CODE = "PYR129"
Sampled = Callable[..., Case]


STEP = """
def iou(a, b):
    return (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0).prod()


def select(boxes, scores, limit):
    order = scores.argsort(descending=True).tolist()
    kept = []
    while order:
        best = order.pop(0)
        kept.append(best)
        order = [i for i in order if iou(boxes[best], boxes[i]) <= limit]
    return kept
"""
MASKED = """
def nms(boxes, scores, limit):
    dropped = torch.zeros(len(boxes), dtype=torch.bool)
    for i in scores.argsort(descending=True):
        overlap = area_of_overlap(boxes, boxes[i])
        if dropped[i]:
            continue
        dropped[overlap > limit] = True
    return ~dropped
"""
BUSY = {"operator -": 0.6, "python python": 0.2}


@pytest.mark.parametrize(("text", "inner", "line"), [(STEP, 12, 9), (MASKED, 5, 4)])
def test_the_loop_is_told_once(sampled: Sampled, text: str, inner: int, line: int) -> None:
    case = sampled(text, {inner: BUSY}, loops={line: (300, BUSY)})
    assert [(finding.code, finding.where.line) for finding in diagnose_case(case).findings] == [(CODE, line)]


@pytest.mark.parametrize(
    "text",
    [
        "def match(iou, limit):\n    kept = []\n    for i in range(len(iou)):\n        kept.append(i)\n    return kept\n",
        "def total(xs, limit):\n    out = []\n    for x in xs:\n        if x > limit:\n            out.append(x)\n    return out\n",
    ],
)
def test_other_loops_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], text: str
) -> None:
    assert findings(CODE, sampled(text, {4: BUSY}, loops={3: (300, BUSY)})) == []


def test_all_overlaps_at_once_keep_the_same_boxes(run: Callable[..., dict[str, Any]]) -> None:
    generator = torch.Generator().manual_seed(0)
    corners = torch.rand(60, 2, generator=generator) * 20
    boxes = torch.cat([corners, corners + 1 + torch.rand(60, 2, generator=generator) * 9], dim=1)
    scores = torch.rand(60, generator=generator)

    def iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        sides = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0)
        return sides.prod() / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - sides.prod())

    before = run(CODE, "Example", torch=torch, iou=iou)["suppress"](boxes, scores, 0.4)
    after = run(CODE, "Use instead", torch=torch, np=np)["suppress"](boxes, scores, 0.4)
    assert after.tolist() == before.tolist()
