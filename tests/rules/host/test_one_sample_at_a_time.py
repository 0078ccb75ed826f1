"""PYR136: a model that is asked for one sample at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR136"
Sampled = Callable[..., Case]

SOURCE = """
import torch


def play(model, boards):
    for board in boards.values():
        move = choose(model, board)
        board.play(move)


def choose(model, board):
    return model(board.unsqueeze(0))[0].argmax()
"""
INSIDE = """
import torch


def answers(model, paths):
    return [model(load(path)[None])[0] for path in paths]
"""
SPENT = {"operator model": 0.8}
ROUNDS = {6: (10.0, SPENT)}
"""A call takes 0.8 ms."""


def test_the_line_and_the_loop_around_its_function_are_told(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(SOURCE, {12: SPENT}, loops=ROUNDS))
    gain = finding.advice.gain
    assert finding.where.line == 12
    assert "`boards.values()` (line 6)" in finding.message
    assert gain is not None
    assert 0.1 < (gain.ratio_low or 0) < (gain.ratio_high or 0) < 0.9


def test_a_comprehension_is_a_loop(sampled: Sampled, only: Callable[..., Finding]) -> None:
    assert "`paths` (line 6)" in only(CODE, sampled(INSIDE, {6: SPENT}, loops=ROUNDS)).message


@pytest.mark.parametrize(
    "new",
    ["torch.tensor([board.cells])", "board[None, :]", "board.reshape(1, -1).to(model.device)", "one"],
)
def test_a_batch_of_one_is_known_however_it_is_written(
    sampled: Sampled, only: Callable[..., Finding], new: str
) -> None:
    source = SOURCE.replace("board.unsqueeze(0)", new)
    if new == "one":
        source = source.replace(
            "    return model", "    one = torch.as_tensor([board.cells])\n    return model"
        )
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "return " in text)
    assert only(CODE, sampled(source, {line: SPENT}, loops=ROUNDS)).where.line == line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("board.unsqueeze(0)", "board"),
        ("board.unsqueeze(0)", "board.unsqueeze(1)"),
        ("model(board.unsqueeze(0))", "torch.relu(board.unsqueeze(0))"),
        ("model(board.unsqueeze(0))", "model.kept.append(board.unsqueeze(0))"),
        ("for board in boards.values():", "while board := boards.next():"),
        ("board.play(move)", "board.play(move).backward()"),
        (
            "        move = choose",
            "        board = turned(board)\n        board = board + move\n        move = choose",
        ),
    ],
)
def test_batches_and_rounds_that_depend_on_each_other_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], old: str, new: str
) -> None:
    source = SOURCE.replace(old, new)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "return " in text)
    assert findings(CODE, sampled(source, {line: SPENT}, loops=ROUNDS)) == []


def test_long_calls_are_work(sampled: Sampled, findings: Callable[..., list[Finding]]) -> None:
    assert findings(CODE, sampled(SOURCE, {12: SPENT})) == []


def test_one_batch_gives_the_same_answers(run: Callable[..., dict[str, Any]]) -> None:
    torch.manual_seed(0)
    given = {"torch": torch, "model": torch.nn.Linear(4, 3), "samples": list(torch.randn(5, 4))}
    before, after = (run(CODE, title, **given)["answers"] for title in ("Example", "Use instead"))
    torch.testing.assert_close(torch.stack(before), torch.stack(after))
