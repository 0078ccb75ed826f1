"""PYR122: loops in Python over elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR122"
Sampled = Callable[..., Case]


STEP = """
def smooth(signal, out):
    for t in range(signal.shape[0]):
        for c in range(signal.shape[1]):
            out[t, c] = 0.3 * signal[t, c] + 0.7 * out[t - 1, c]
    return torch.from_numpy(out)
"""
BUSY = {"python python": 0.6, "numpy []": 0.3}


def test_the_innermost_loop_with_the_time_is_told_with_its_rounds(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    finding = only(CODE, sampled(STEP, {5: BUSY}, loops={3: (100, BUSY), 4: (6400, BUSY)}))
    assert (finding.where.line, finding.where.function) == (4, "smooth")
    assert "range(signal.shape[1])" in finding.message
    assert "6,400 rounds" in finding.message
    assert finding.advice.gain is not None
    assert (finding.advice.gain.ratio_low or 0) < 0.15 < (finding.advice.gain.ratio_high or 0) < 0.5


@pytest.mark.parametrize(
    ("leaves", "words"),
    [
        ({"numpy []": 0.5, "python python": 0.2}, "whole arrays"),
        ({"synchronisation Tensor.item": 0.6}, "tolist()"),
        ({"python python": 0.8}, "whole tensors"),
        ({"python list.index": 0.5, "python python": 0.3}, "make a dict"),
    ],
)
def test_the_advice_is_about_what_the_rounds_spend(
    sampled: Sampled, only: Callable[..., Finding], leaves: dict[str, float], words: str
) -> None:
    assert words in only(CODE, sampled(STEP, {5: leaves}, loops={4: (6400, leaves)})).advice.title


@pytest.mark.parametrize(
    "loops",
    [
        {3: (4, BUSY)},  # layers, or levels
        {3: (100, {"operator torch.relu": 0.8, "python python": 0.1})},  # work of operators
        {3: (100, {"python python": 0.1})},  # little
        {3: (100, {"file file.write": 0.8, "python python": 0.1})},  # another rule's
    ],
)
def test_other_loops_are_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]], loops: Any
) -> None:
    assert findings(CODE, sampled(STEP, {5: BUSY}, loops=loops)) == []


def test_the_loop_whose_rounds_are_the_steps_is_left_alone(
    sampled: Sampled, findings: Callable[..., list[Finding]]
) -> None:
    text = "import torch\n\nfor inputs, targets in loader:\n    loss = model(inputs)\n    loss.backward()\n    optimizer.step()\n"
    assert findings(CODE, sampled(text, {4: BUSY}, loops={3: (None, BUSY)})) == []


def test_whole_arrays_give_the_same(run: Callable[..., dict[str, Any]]) -> None:
    points, others = torch.rand(20, 2), torch.rand(30, 2)
    before = run(CODE, "Example", np=np, torch=torch)["smallest_distance"](points.numpy(), others.numpy())
    after = run(CODE, "Use instead", torch=torch)["smallest_distance"](points, others)
    torch.testing.assert_close(after, before)


def test_a_loop_that_makes_samples_is_to_run_once_for_each(
    sampled: Sampled, only: Callable[..., Finding]
) -> None:
    source = """
class Texts(Dataset):
    def __getitem__(self, i):
        return self.encode(self.texts[i])

    def encode(self, text):
        ids = []
        for word in text.split():
            ids.append(self.vocabulary.get(word, 0))
        return torch.tensor(ids)
"""
    spent = {"python dict.get": 0.5, "python python": 0.2}
    finding = only(CODE, sampled(source, {9: spent}, loops={8: (400, spent)}))
    assert "when the dataset is made" in finding.advice.title
    assert "whole tensors" not in finding.advice.title
