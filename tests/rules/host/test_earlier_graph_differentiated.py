"""PYR135: passes that walk the graphs of earlier rounds again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR135"
Sampled = Callable[..., Case]

SOURCE = """
import torch


def train(model, windows, optimizer, state):
    for step, (x, y) in enumerate(windows):
        logits, state = model(x, state)
        loss = torch.nn.functional.cross_entropy(logits, y)
        loss.backward(retain_graph=True)
        if step % 10 == 9:
            optimizer.step()
            state = state.detach()


def repackage(state):
    return tuple(part.detach() for part in state)
"""
METHOD = """
import torch


class Trainer:
    def step(self, x, y):
        out, self.memory = self.model(x, self.memory)
        loss = (out - y).square().mean()
        loss.backward(retain_graph=True)
        self.optimizer.step()
"""
SPENT = {"backward torch.Tensor.backward": 0.7, "operator []": 0.1}


def test_what_carries_the_graph_is_named_with_the_line_that_lets_it_go(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(SOURCE, {9: SPENT}))
    gain = finding.advice.gain
    assert finding.where.line == 9
    assert "`state` (line 7)" in finding.message
    assert "`state = state.detach()`" in finding.advice.title
    assert gain is not None
    assert 0.2 < (gain.ratio_low or 0) < (gain.ratio_high or 0) < 0.95


def test_a_method_carries_it_in_an_attribute(sampled: Sampled, only: Callable[..., Finding]) -> None:
    assert "`self.memory` (line 7)" in only(CODE, sampled(METHOD, {9: SPENT})).message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("retain_graph=True", ""),
        ("        logits", "        state = state.detach()\n        logits"),
        ("        logits", "        state = repackage(state)\n        logits"),
        ("logits, state = model(x, state)", "logits = model(x, state)"),
        ("        logits", "        state = model.start()\n        logits"),
    ],
)
def test_what_is_let_go_in_each_round_or_made_anew_is_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], old: str, new: str
) -> None:
    source = SOURCE.replace(old, new, 1)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if ".backward(" in text)
    assert findings(CODE, sampled(source, {line: SPENT})) == []


def test_no_other_rule_takes_it_for_one_graph(
    sampled: Sampled, findings: Callable[..., list[Finding]]
) -> None:
    assert findings("PYR132", sampled(SOURCE, {9: SPENT}, loops={6: (10.0, SPENT)})) == []


def test_the_detached_state_is_worth_the_same_and_each_pass_walks_one_graph(
    run: Callable[..., dict[str, Any]],
) -> None:
    def nodes(state: torch.Tensor) -> int:
        seen, left = set(), [state.grad_fn]
        while left:
            node = left.pop()
            if node is not None and node not in seen:
                seen.add(node)
                left += [edge for edge, _ in node.next_functions]
        return len(seen)

    ends = {}
    for title in ("Example", "Use instead"):
        torch.manual_seed(0)
        windows = [(torch.randn(2, 4), torch.randn(2, 8)) for _ in range(5)]
        ends[title] = run(CODE, title, torch=torch, layer=torch.nn.Linear(4, 8), windows=windows)
    torch.testing.assert_close(ends["Example"]["state"], ends["Use instead"]["state"])
    assert nodes(ends["Example"]["loss"]) > 2 * nodes(ends["Use instead"]["loss"])
