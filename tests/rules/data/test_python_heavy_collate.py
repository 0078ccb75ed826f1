"""PYR307: collate functions that work number by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.loading.report import StageTime
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.source.module import Module

HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"
TAIL = "\nloader = DataLoader(data, collate_fn=collate)\n"

FIRES = {
    "two indices": """
def collate(batch):
    out = torch.zeros(len(batch), 10)
    for i, row in enumerate(batch):
        for j, value in enumerate(row):
            out[i, j] = value  # <-
    return out
""",
    "one after the other": """
def collate(batch):
    out = torch.zeros(len(batch), 10)
    for i in range(len(batch)):
        for j in range(len(batch[i])):
            out[i][j] = batch[i][j]  # <-
    return out
""",
}

SILENT = {
    "rows": """
def collate(batch):
    out = torch.zeros(len(batch), 10)
    for i, row in enumerate(batch):
        out[i, : len(row)] = torch.as_tensor(row)
    return out
""",
    "rows of several fields": """
def collate(batch):
    out = {}
    for i, sample in enumerate(batch):
        for name in sample:
            out[name][i, : len(sample[name])] = sample[name]
    return out
""",
    "a stack": """
def collate(batch):
    return torch.stack([torch.as_tensor(row) for row in batch])
""",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_fires_at_the_assignment(
    text: str, lines: Callable[..., list[int]], marked: Callable[[str], list[int]]
) -> None:
    assert lines("PYR307", HEAD + text + TAIL) == marked(HEAD + text + TAIL)
    assert lines("PYR307", HEAD + text) == [], "nobody uses it to collate"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_is_silent(text: str, lines: Callable[..., list[int]]) -> None:
    assert lines("PYR307", HEAD + text + TAIL) == []


def test_finds_its_example_and_not_the_replacement(speaks_as_documented: Callable[[str], None]) -> None:
    speaks_as_documented("PYR307")


def test_the_replacement_gives_the_same_batch(run: Callable[..., dict[str, Any]]) -> None:
    rows = [[0.5] * 128, [1.0, 2.0]]
    slow, fast = (run("PYR307", heading)["collate"](rows) for heading in ("Example", "Use instead"))
    assert torch.equal(slow, fast)


def stages(decode_s: float, collate_s: float) -> list[StageTime]:
    return [
        StageTime(name=name, where="main", per_step_s=value, share=value / 0.1)
        for name, value in (("decode", decode_s), ("collate", collate_s))
    ]


def test_a_collate_function_that_the_step_waits_for_is_told(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    module = Module.parse("train.py", HEAD + FIRES["two indices"] + TAIL)
    evidence = Case(target="a", loading=loading(stages=stages(0.02, 0.04)), modules=(module,))
    finding = findings("PYR307", evidence)[0]
    assert "67 % of making a batch, 40.0 ms per step" in finding.message
    assert (finding.where.line, finding.where.function) == (4, "collate")
    assert finding.advice.gain is not None
    assert finding.advice.gain.ratio_low == pytest.approx(1 - 0.6 * 2 / 3)


def test_a_collate_function_that_nobody_waits_for_is_left_alone(
    loading: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    for report in (
        loading(data_share=0.05, stages=stages(0.001, 0.004)),
        loading(stages=stages(0.06, 0.004)),
    ):
        assert findings("PYR307", Case(target="a", loading=report)) == []


def test_the_advice_of_the_sample_profile_replaces_the_rules_own(
    loading: Callable[..., Any], advice: Callable[..., Any], findings: Callable[..., list[Finding]]
) -> None:
    report = loading(stages=stages(0.02, 0.04), advice=[advice("default-collate", 0.03)])
    (finding,) = findings("PYR307", Case(target="a", loading=report))
    assert finding.message == "why default-collate"
