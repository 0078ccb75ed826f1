"""Settings that the advice names: each takes its break away, and is as before at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from representative import every
from torch._dynamo import config

HEAD = """\
import logging
import warnings

import numpy as np
import torch
from torch import nn

log = logging.getLogger("program")
lstm = nn.LSTM(4, 4)
lstm.requires_grad_(False)


"""

CASES = {
    "item": ("gb0124", "def f(x):\n    s = x.sum().item()\n    return x * 2, s\n", "capture_scalar_outputs"),
    "tolist": (
        "gb0033",
        "def f(x):\n    y = (x > 0).long().tolist()\n    return x * y[0]\n",
        "capture_scalar_outputs",
    ),
    "index": (
        "gb0124",
        "def f(x):\n    i = x.argmax().item()\n    return x[i] * x\n",
        "capture_scalar_outputs",
    ),
    "nonzero": (
        "gb0036",
        "def f(x):\n    y = x * 2\n    return torch.nonzero(y).sum()\n",
        "capture_dynamic_output_shape_ops",
    ),
    "unique": (
        "gb0036",
        "def f(x):\n    y = x * 2\n    return torch.unique(y).sum()\n",
        "capture_dynamic_output_shape_ops",
    ),
    "print": (
        "gb0059",
        "def f(x):\n    y = x * 2\n    print('sum', y.sum())\n    return y + 1\n",
        "reorderable_logging_functions",
    ),
    "warn": (
        "gb0007",
        "def f(x):\n    y = x * 2\n    warnings.warn('ok')\n    return y + 1\n",
        "reorderable_logging_functions",
    ),
    "logger": (
        "gb0291",
        "def f(x):\n    y = x * 2\n    log.info('ok')\n    return y + 1\n",
        "ignore_logging_functions",
    ),
    "logging": (
        "gb4841",
        "def f(x):\n    y = x * 2\n    logging.debug('ok')\n    return y + 1\n",
        "ignore_logging_functions",
    ),
    "lstm": ("gb0014", "def f(x):\n    return lstm(x.expand(2, 3, 4))[0]\n", "allow_rnn"),
    "backward": (
        "gb0123",
        "def f(x):\n    w = x.detach().requires_grad_()\n    (w * w).sum().backward()\n    return w.grad * 2\n",
        "trace_autograd_ops",
    ),
    "grad": (
        "gb9186",
        "def f(x):\n    w = x.detach().requires_grad_()\n    return torch.autograd.grad((w * w).sum(), w)[0] * 2\n",
        "trace_autograd_ops",
    ),
}


@pytest.mark.parametrize("case", every(3, CASES.values()), ids=CASES)
def test_the_setting_takes_breaks_away(
    case: tuple[str, str, str], program: Callable[[str], Any], capsys: Any
) -> None:
    gb_id, body, name = case
    inputs = [(torch.rand(4) + 0.1,) for _ in range(3)]
    before = program(HEAD + body)
    found = before.compiled(inputs)
    assert gb_id in [root.id for root in found.roots]
    setting = next(each for each in found.settings() if f"config.{name}" in each.rewrite)
    again = before.compiled(inputs, setting)
    assert len(again.breaks) < len(found.breaks)
    with_tensors = [
        (one, other)
        for one, other in zip(again.outputs, found.outputs, strict=True)
        if isinstance(one, torch.Tensor)
    ]
    for one, other in with_tensors:
        torch.testing.assert_close(one, other)


def test_numpy_may_be_traced_again_by_its_setting(program: Callable[[str], Any]) -> None:
    before = program(HEAD + "def f(x):\n    return torch.from_numpy(np.sin(x.numpy())) * 2\n")
    inputs = [(torch.rand(4),)]
    with config.patch(trace_numpy=False):
        found = before.compiled(inputs)
        again = before.compiled(inputs, found.settings()[0])
        assert config.trace_numpy is False
    assert found.breaks
    assert not again.breaks
