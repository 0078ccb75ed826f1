"""PYR204: outputs of all batches on an accelerator."""

from __future__ import annotations

import pytest

CODE = "PYR204"

LOOP = """\
import torch
from torch import nn

@torch.no_grad()
def predict(loader):
    model = nn.Linear(2, 2).cuda()
    outputs = []
    for x in loader:
        x = x.cuda()
        {line}
    return torch.cat(outputs)
"""


@pytest.mark.parametrize(
    "line",
    [
        "outputs.append(model(x))  # <-",
        "outputs.append(model(x).softmax(-1))  # <-",
        "out = model(x)\n        outputs.append(out)  # <-",
    ],
)
def test_it_finds_whole_outputs_on_the_device(fires, line):
    fires(CODE, LOOP.format(line=line))


@pytest.mark.parametrize(
    "line",
    [
        "outputs.append(model(x).cpu())",
        "outputs.append(model(x).argmax(-1))",
        "out = model(x).cpu()\n        outputs.append(out)",
        "outputs.append(x.shape)",
        "outputs.append(model(x)); outputs.clear()",
    ],
)
def test_it_is_silent_about_outputs_on_the_host_and_reduced_ones(silent, line):
    silent(CODE, LOOP.format(line=line))


def test_programs_on_the_cpu_and_generating_loops_are_silent(silent):
    silent(CODE, LOOP.format(line="outputs.append(model(x))").replace(".cuda()", ""))
    silent(CODE, LOOP.format(line="outputs.append(model(x))").replace("in loader", "in range(100)"))


def test_the_advice_followed_is_silent(matches, silent):
    text = LOOP.format(line="outputs.append(model(x))")
    (match,) = matches(CODE, text)
    advised = match.advice.split("`")[1]
    assert advised == "model(x).cpu()"
    silent(CODE, text.replace("model(x))", f"{advised})"))
