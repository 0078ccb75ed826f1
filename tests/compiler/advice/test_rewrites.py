"""Every rewrite is carried out: fewer breaks afterwards, and the outputs of the program as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from representative import every

HEAD = """\
import copy
import gc
import logging
import random
import sys
import time
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

log = logging.getLogger("program")
TABLE = [1.0, -2.0, 0.5]
THRESHOLD = 0.25
linear = nn.Linear(4, 4)
linear.requires_grad_(False)
nn.init.eye_(linear.weight)
nn.init.ones_(linear.bias)


@torch.compiler.disable
def apart(x):
    return x + 1


"""


@dataclass
class Case:
    """A program, the id that its break must have, and what the first rewrite must look like."""

    name: str
    id: str
    body: str
    expect: str
    """A part of the text after the rewrite."""
    inputs: Sequence[tuple[Any, ...]] = field(default_factory=list)


def _signs() -> list[tuple[torch.Tensor]]:
    """Inputs that take both branches of a test of the sum's sign."""
    generator = torch.Generator().manual_seed(1)
    positive = [torch.rand(4, generator=generator) + 0.1 for _ in range(2)]
    mixed = [torch.randn(4, generator=generator) for _ in range(3)]
    return [(x,) for x in [*positive, *(-x for x in positive), *mixed]]


def _with_index() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(x, torch.tensor(index)) for (x,), index in zip(_signs(), (0, 1, 2, 0, 2, 1, 0), strict=True)]


CASES = [
    Case(
        "if_else_assigns",
        "gb0170",
        """\
def f(x):
    if x.sum() > 0:  # a comment
        y = x * 2
    else:
        y = x - 1
    return y + 1
""",
        "y = torch.where(x.sum() > 0, x * 2, x - 1)",
    ),
    Case(
        "if_alone_assigns",
        "gb0170",
        """\
def f(x):
    y = x.tanh()
    if torch.any(x > 0) and not x.mean() < 0.2:
        y = y * 3
    return y
""",
        "torch.where(torch.any(x > 0) & ~(x.mean() < 0.2), y * 3, y)",
    ),
    Case(
        "if_adds_in_place",
        "gb0170",
        """\
def f(x):
    y = x * 2
    if x.max() > 0.5:
        y += 1
    return y
""",
        "y = torch.where(x.max() > 0.5, y + 1, y)",
    ),
    Case(
        "if_assigns_two_names",
        "gb0170",
        """\
def f(x):
    a = x + 0
    b = x + 1
    if a.sum() > 0:
        a = a * 2
        b = a - b
    else:
        a = a - 3
        b = a + b
    return a * b
""",
        "condition = a.sum() > 0\n",
    ),
    Case(
        "if_returns",
        "gb0170",
        """\
def f(x):
    if x.sum() > 0:
        return x * 2
    return x - 1
""",
        "return torch.where(x.sum() > 0, x * 2, x - 1)",
    ),
    Case(
        "conditional_expression",
        "gb0170",
        """\
def f(x):
    y = x * 2 if x.sum() > 0 else x - 1  # one of both
    return y.sin()
""",
        "y = torch.where(x.sum() > 0, x * 2, x - 1)  # one of both",
    ),
    Case(
        "truth_of_a_tensor",
        "gb0170",
        """\
def f(x):
    flag = (x.sum() > 0).reshape(1)
    if flag:
        x = x * 2
    return x
""",
        "torch.where((flag != 0).reshape(()), x * 2, x)",
    ),
    Case(
        "branches_without_a_gradient_somewhere",
        "gb0170",
        """\
def f(x):
    y = x + 1
    if x.sum() > 0:
        y = y.exp() / y
    else:
        y = y.abs().sqrt()
    return y * 2
""",
        "torch.cond(x.sum() > 0, lambda: y.exp() / y, lambda: y.abs().sqrt(), ())",
    ),
    Case(
        "branch_that_keeps_its_input",
        "gb0170",
        """\
def f(x):
    y = x + 1
    if x.sum() > 0:
        y = y**3
    return y
""",
        "torch.cond(x.sum() > 0, lambda: y**3, lambda: y.clone(), ())",
    ),
    Case(
        "item_in_a_test",
        "gb0124",
        """\
def f(x):
    y = x * 2
    if x.sum().item() > 0:
        y = y + 1
    return y
""",
        "torch.where(x.sum() > 0, y + 1, y)",
    ),
    Case(
        "allclose_in_a_test",
        "gb0033",
        """\
def f(x: Tensor):
    if torch.allclose(x, x.abs()):
        return x + 1
    return x - 1
""",
        "torch.where(torch.isclose(x, x.abs()).all(), x + 1, x - 1)",
    ),
    Case(
        "raise",
        "gb0170",
        """\
def f(x):
    y = x * 2
    if torch.isnan(x).any():
        raise ValueError("not a number")
    return y
""",
        "assert ~torch.isnan(x).any(), 'not a number'",
    ),
    Case(
        "assert_with_an_exception",
        "gb0170",
        """\
def f(x):
    y = x * 2
    assert x.sum() > -100, ValueError("too small")
    return y
""",
        "assert x.sum() > -100, 'too small'",
    ),
    Case(
        "while",
        "gb0170",
        """\
def f(x):
    y = x + 1
    while y.sum() < 50:
        step = y.abs()
        y = step * 2 + 1
    return y * 2
""",
        "(y,) = torch.while_loop(keeps_on, next_round, (y,))",
    ),
    Case(
        "item",
        "gb0124",
        """\
def f(x):
    peak = x.abs().max().item()
    return x / peak
""",
        "peak = x.abs().max().detach()",
    ),
    Case(
        "item_of_one_element",
        "gb0124",
        """\
def f(x: Tensor):
    first = x[0].item()
    x = x + first
    return x * first
""",
        "first = x[0].detach().clone().reshape(())",
    ),
    Case(
        "float",
        "gb0124",
        """\
def f(x: Tensor):
    return x * float(x.sum()) + 1
""",
        "return x * x.sum().detach().double() + 1",
    ),
    Case(
        "int",
        "gb0124",
        """\
def f(x: torch.Tensor):
    whole = int((x * 10).sum())
    return x * whole
""",
        "whole = (x * 10).sum().detach().long()",
    ),
    Case(
        "item_in_a_loop",
        "gb0124",
        """\
def f(x):
    total = 0.0
    for i in range(3):
        x = x.sin() + i
        total += x.sum().item()
    return x * total
""",
        "total += x.sum().detach()",
    ),
    Case(
        "list_of_values",
        "gb0109",
        """\
def f(x: Tensor):
    y = x * 0
    for value in x.tolist():
        y = y * 0.5 + value
    return y
""",
        "for value in x.detach().unbind():",
    ),
    Case(
        "print",
        "gb0059",
        """\
def f(x):
    y = x * 2
    print("shape", y.shape)
    return y + 1
""",
        "if not torch.compiler.is_compiling():\n        print(",
    ),
    Case(
        "print_in_a_loop",
        "gb0059",
        """\
def f(x):
    for i in range(3):
        x = x.sin()
        print(
            "round",
            i,
        )
    return x
""",
        '        if not torch.compiler.is_compiling():\n            print(\n                "round",\n',
    ),
    Case(
        "logging",
        "gb0291",
        """\
def f(x):
    y = x * 2
    log.info("shape %s", y.shape)
    return y + 1
""",
        "if not torch.compiler.is_compiling():",
    ),
    Case(
        "print_in_try",
        "gb0059",
        """\
def f(x):
    try:
        y = x * 2
        print("done")
    finally:
        x = x + 1
    return x + y
""",
        "        if not torch.compiler.is_compiling():",
    ),
    Case(
        "garbage_collection",
        "gb0007",
        """\
def f(x):
    y = x * 2
    gc.collect()
    return y + 1
""",
        "    gc.collect()",
        [(torch.ones(4),)],
    ),
    Case(
        "clock",
        "gb0007",
        """\
def f(x):
    y = x * 2
    started = time.perf_counter()
    return y + 1
""",
        "started = (0 if torch.compiler.is_compiling() else time.perf_counter())",
    ),
    Case(
        "threshold_by_name",
        "gb0170",
        """
def f(x):
    y = x.tanh()
    if y.max() < THRESHOLD:
        y = y * 2
    return y + 1
""",
        "y = torch.where(y.max() < THRESHOLD, y * 2, y)",
        _signs(),
    ),
    Case(
        "masked_by_name",
        "gb0036",
        """
def f(x):
    y = x.tanh()
    return x * y[y > THRESHOLD].sum()
""",
        "torch.where(y > THRESHOLD, y, 0).sum()",
        _signs(),
    ),
    Case(
        "masked_sum",
        "gb0036",
        """\
def f(x):
    y = x * 2
    return y[y > 0].sum() + y
""",
        "torch.where(y > 0, y, 0).sum() + y",
    ),
    Case(
        "masked_mean",
        "gb0036",
        """\
def f(x):
    y = x.exp()
    return y * torch.masked_select(y, y > 0.01).mean()
""",
        "y * (torch.where(y > 0.01, y, 0).sum() / (y > 0.01).sum())",
    ),
    Case(
        "masked_count",
        "gb0036",
        """\
def f(x: Tensor):
    y = x * 2
    return y * len(y[y > 0])
""",
        "y * (y > 0).sum()",
    ),
    Case(
        "number_from_a_list",
        "gb0124",
        """\
def f(x: Tensor, index: Tensor):
    return x * TABLE[index]
""",
        "torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, device=index.device).take(",
        _with_index(),
    ),
    Case(
        "number_from_a_dictionary",
        "gb0124",
        """\
def f(x: Tensor, index: Tensor):
    weights = {0: 3, 1: 1, 2: -2}
    return x * weights[index.item()]
""",
        "torch.tensor([3, 1, -2], device=index.device).take(",
        _with_index(),
    ),
    Case(
        "scipy",
        "gb0156",
        """\
import scipy.special


def f(x):
    return torch.from_numpy(scipy.special.expit(x.numpy())) + 1
""",
        "torch.special.expit(x.detach())",
    ),
    Case(
        "graph_break",
        "gb0025",
        """\
def f(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1
""",
        "    y = x * 2\n    return y + 1",
    ),
    Case(
        "disabled_function",
        "gb0098",
        """\
def f(x):
    y = x * 2
    return apart(y) * 2
""",
        "\n\ndef apart(x):",
    ),
    Case(
        "watching_context",
        "gb0008",
        """\
def f(x):
    with torch.autograd.set_detect_anomaly(True):
        y = x * 2
        y = y.sin()
    return y + 1
""",
        "def f(x):\n    y = x * 2\n    y = y.sin()\n    return y + 1",
    ),
    Case(
        "class_in_function",
        "gb8977",
        """\
def f(x):
    class Scale:
        factor = 2

    return x * Scale.factor
""",
        "class Scale:\n    factor = 2\n\n\ndef f(x):",
    ),
    Case(
        "deepcopy",
        "gb4198",
        """\
def f(x: Tensor):
    y = x * 2
    z = copy.deepcopy(y)
    y += 1
    return y * z
""",
        "z = y.detach().clone()",
    ),
]


@pytest.mark.parametrize("case", every(4, CASES), ids=lambda case: case.name)
def test_the_rewrite_takes_breaks_away_and_keeps_the_outputs(
    case: Case, program: Callable[[str], Any], caplog: Any, capsys: Any
) -> None:
    inputs = list(case.inputs) or _signs()
    before = program(HEAD + case.body)
    found = before.compiled(inputs)
    assert case.id in [root.id for root in found.roots]
    place, rewrite = found.rewrites()[0]
    after = before.rewritten(place, rewrite)
    assert case.expect in after.source
    again = after.compiled(inputs)
    assert len(again.breaks) < len(found.breaks)
    wanted = before.eager(inputs)
    assert _are_close(again.outputs, wanted)
    assert _are_close(after.eager(inputs), wanted)
    if rewrite.fix_class == "exact":
        assert all(torch.equal(one, other) for one, other in zip(again.outputs, wanted, strict=True))


@pytest.mark.parametrize("case", every(3, CASES[:9]), ids=lambda case: case.name)
def test_gradients_of_a_rewritten_decision_are_those_of_the_branch_that_was_taken(
    case: Case, program: Callable[[str], Any]
) -> None:
    inputs = _signs()[1:-1]
    before = program(HEAD + case.body)
    place, rewrite = before.compiled(inputs).rewrites()[0]
    after = torch.compile(before.rewritten(place, rewrite).module.f, backend="aot_eager")
    for (x,) in inputs:
        one, other = (x.clone().requires_grad_() for _ in range(2))
        before.module.f(one).sum().backward()
        after(other).sum().backward()
        torch.testing.assert_close(other.grad, one.grad)


def test_a_number_that_stays_a_tensor_hands_on_no_gradient(program: Callable[[str], Any]) -> None:
    before = program(HEAD + "def f(x):\n    peak = x.abs().max().item()\n    return x / peak\n")
    (x,) = _signs()[0]
    place, rewrite = before.compiled([(x,)]).rewrites()[0]
    after = before.rewritten(place, rewrite)
    one, other = (x.clone().requires_grad_() for _ in range(2))
    before.module.f(one).sum().backward()
    after.module.f(other).sum().backward()
    torch.testing.assert_close(other.grad, one.grad)


@pytest.mark.parametrize(
    ("body", "low", "high"),
    [
        ("def f(x: Tensor):\n    k = random.random()\n    return x * 0 + k\n", 0.0, 1.0),
        ("def f(x: Tensor):\n    return x * 0 + np.random.rand()\n", 0.0, 1.0),
        ("def f(x: Tensor):\n    return x * 0 + random.gauss(2, 1)\n", -4.0, 8.0),
        (
            "def f(x: Tensor):\n    y = x * 0\n    if random.random() < 0.5:\n        y = y + 1\n    return y\n",
            0.0,
            1.0,
        ),
    ],
    ids=["random", "numpy", "gauss", "chance"],
)
def test_random_numbers_drawn_with_torch_have_the_same_distribution(
    body: str, low: float, high: float, program: Callable[[str], Any]
) -> None:
    x = torch.ones(4)
    before = program(HEAD + body)
    found = before.compiled([(x,)])
    place, rewrite = found.rewrites()[0]
    assert rewrite.fix_class == "semantic"
    after = before.rewritten(place, rewrite)
    again = after.compiled([(x,)] * 400)
    assert len(again.breaks) < len(found.breaks)
    draws = torch.stack([output[0] for output in again.outputs])
    assert all(output.shape == x.shape and output.dtype == x.dtype for output in again.outputs)
    assert draws.min() >= low
    assert draws.max() <= high
    assert abs(float(draws.mean()) - (low + high) / 2) < 0.15 * (high - low)
    assert draws.unique().numel() >= 2


def test_a_failing_assertion_still_raises_in_compiled_code(program: Callable[[str], Any]) -> None:
    before = program(HEAD + next(case.body for case in CASES if case.name == "raise"))
    place, rewrite = before.compiled(_signs()).rewrites()[0]
    after = before.rewritten(place, rewrite)
    with pytest.raises(RuntimeError, match="not a number"):
        torch.compile(after.module.f, backend="eager")(torch.full((4,), float("nan")))


def test_an_operator_learns_its_shapes_from_its_own_implementation(program: Callable[[str], Any]) -> None:
    body = """\
import torch

library = torch.library.Library("pyrometer_test_twice", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")


def f(x):
    y = x + 1
    return torch.ops.pyrometer_test_twice.twice(y) + 1
"""
    before = program(body)
    found = before.compiled(_signs())
    place, rewrite = found.rewrites()[0]
    assert place.id == "gb0090"
    wanted = before.eager(_signs())
    before.module.library._destroy()
    after = before.rewritten(place, rewrite)
    again = after.compiled(_signs())
    after.module.library._destroy()
    assert len(again.breaks) < len(found.breaks)
    assert _are_close(again.outputs, wanted)


def _are_close(one: Sequence[Any], other: Sequence[Any]) -> bool:
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, equal_nan=True)
    return True
