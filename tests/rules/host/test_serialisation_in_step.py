"""PYR121: objects turned into bytes, or copied, in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR121"
Sampled = Callable[..., Case]


STEP = """
def step(model, x, state):
    snapshot = copy.deepcopy(state)
    torch.save(model.state_dict(), "latest.pt")
    return model(x), snapshot
"""


@pytest.mark.parametrize(
    ("line", "leaf", "advice"),
    [
        (4, "torch.save torch.save", "every N steps"),
        (3, "copy copy.deepcopy", "Copy only"),
        (3, "json json.dumps", "JSON"),
        (3, "pickle pickle.dumps", "buffer"),
    ],
)
def test_each_way_of_it_is_told_at_its_line(
    sampled: Sampled, only: Callable[..., Finding], line: int, leaf: str, advice: str
) -> None:
    finding = only(CODE, sampled(STEP, {line: {leaf: 0.6, "operator x": 0.1}}))
    assert (finding.where.line, finding.cost and finding.cost.share) == (line, pytest.approx(0.6))
    assert advice.casefold() in finding.advice.title.casefold() or advice == "JSON"


def test_little_of_it_is_left_alone(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert (
        findings(CODE, sampled(STEP, {4: {"torch.save torch.save": 0.1}, 5: {"operator model": 0.9}})) == []
    )


def test_saving_seldom_leaves_the_same_file(run: Callable[..., dict[str, Any]]) -> None:
    class Torch:
        def __init__(self) -> None:
            self.saved: list[int] = []

        def save(self, state: int, _path: str) -> None:
            self.saved.append(state)

    class Model:
        steps = 0

        def state_dict(self) -> int:
            return self.steps

    def trained(heading: str) -> list[int]:
        torch, model = Torch(), Model()

        def train_step(_inputs: int, _targets: int) -> None:
            model.steps += 1

        run(CODE, heading, loader=[(0, 0)] * 2500, torch=torch, model=model, train_step=train_step)
        return torch.saved

    before, after = trained("Example"), trained("Use instead")
    assert after[-1] == before[-1] == 2500
    assert (len(before), len(after)) == (2500, 3)
