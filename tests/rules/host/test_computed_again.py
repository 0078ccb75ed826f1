"""PYR134: results that the step has already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from waste import case_at

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR134"
Sampled = Callable[..., Case]


def test_what_is_needless_is_told_at_its_line_with_how_often(only: Callable[..., Finding]) -> None:
    finding = only(CODE, case_at(CODE, 0.5))
    assert finding.where.text == "model.py:12"
    assert "3 results again" in finding.message
    assert "39 times" in finding.message
    assert finding.cost.share == pytest.approx(0.5)
    gain = finding.advice.gain
    assert 0 < gain.ratio_low < 0.5 < gain.ratio_high < 0.7


def test_little_and_what_lasts_longer_than_a_step_are_left_out(
    findings: Callable[..., list[Finding]],
) -> None:
    assert findings(CODE, case_at(CODE, 0.05)) == []
    assert findings(CODE, case_at("PYR128", 0.5)) == []


def test_with_samples_of_the_line_its_share_is_that_of_the_samples(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    text = "import torch\n\n\ndef project(net, memory):\n    return net(memory)\n"
    case = sampled(text, {5: {"operator net": 0.8}})
    flow = case_at(CODE, 0.3).dataflow
    assert flow is not None
    place = msgspec.structs.replace(flow.repeated[0].where, file="train.py", line=5)
    facts = [msgspec.structs.replace(flow.repeated[0], where=place, of_line=0.75)]
    case = msgspec.structs.replace(case, dataflow=msgspec.structs.replace(flow, repeated=facts))
    assert only(CODE, case).cost.share == pytest.approx(0.6)


def test_projecting_once_gives_the_same(run: Callable[..., dict[str, Any]]) -> None:
    class Decoder:
        def project(self, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return memory * 2, memory + 1

        def next_word(self, word: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            return torch.softmax(word @ keys.T, -1) @ values

    given = (Decoder(), torch.randn(5, 4), torch.randn(1, 4), 6)
    before, after = (run(CODE, part, torch=torch)["write"](*given) for part in ("Example", "Use instead"))
    assert torch.equal(before, after)
