"""PYR109: loops over the elements of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

CODE = "PYR109"


@pytest.mark.parametrize(
    "body",
    [
        "rows = []\nfor row in scores:  # <-\n    rows.append(row / row.sum())",
        "rows = []\nfor i in range(scores.shape[0]):  # <-\n    rows.append(scores[i] - scores[i].mean())",
        "for i, row in enumerate(scores):  # <-\n    total = total + torch.exp(row).sum()",
        "out = torch.empty_like(scores)\nfor t in range(scores.size(1)):  # <-\n    out[:, t] = torch.relu(scores[:, t])",
        "worst = scores[0].sum()\nfor row in scores:  # <-\n    worst = torch.maximum(worst, row.sum())",
        # leaving at a count, and blocks within, leave the rounds alike
        "for i, row in enumerate(scores):  # <-\n    if i >= limit:\n        break\n    history.append(row / row.sum())",
        "for row in scores:  # <-\n    with torch.no_grad():\n        history.append(row / row.sum())",
        "for row in scores:  # <-\n    try:\n        history.append(row / row.sum())\n    except ValueError:\n        raise",
        # comprehensions and pairs
        "rows = torch.stack([row / row.sum() for row in scores])  # <-",
        "for row, target in zip(scores, targets):  # <-\n    history.append(torch.exp(row) * target)",
        "means = scores.mean(dim=2)\nfor i in range(len(means)):  # <-\n    history.append(means[i] * 2)",
        # of loops within each other the outer one
        "for a in scores:  # <-\n    for b in inputs:\n        history.append(torch.exp(a - b).sum())",
    ],
)
def test_finds_loops_whose_rounds_are_independent(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        # what one round gives the next
        "state = torch.zeros(8, device=device)\nfor row in scores:\n    state = torch.tanh(state + row)",
        "out = scores.clone()\nfor t in range(1, scores.size(1)):\n    out[:, t] = out[:, t - 1] + scores[:, t]",
        # reads alone have rules of their own
        "for row in scores.mean(dim=1):\n    history.append(row.item())",
        # few rounds, written out
        "for i in range(3):\n    total = total + scores[i].sum()",
        # another module in each round
        "for i in range(len(heads)):\n    history.append(heads[i](scores[:, i]))",
        "for i in range(len(heads)):\n    head = heads[i]\n    history.append(head(scores[:, i]))",
        # rounds of different sizes
        "for i in range(scores.shape[0]):\n    h, w = sizes[i].tolist()\n    history.append(torch.relu(scores[i].view(h, w)))",
        "for i, length in enumerate(targets):\n    history.append(scores[i, :length].mean(dim=0))",
        "for i in range(scores.shape[0]):\n    history.append(torch.relu(scores[i, : lengths[i]]))",
        "for row in scores:\n    history.append(torch.exp(row[row > 0]))",
        "for row in scores:\n    history.append(row.nonzero().flatten() + 1)",
        "parts = scores.split(sizes)\nfor i in range(len(parts)):\n    history.append(torch.exp(parts[i]) * targets[i])",
        # a recurrence that decays before it is read
        (
            "state = torch.zeros(8, device=device)\nfor row in scores:\n    state = state * 0.5\n"
            "    history.append(torch.relu(state + row))\n    state = state + row"
        ),
        # lists in lists
        (
            "rows = []\nfor _ in range(20):\n    rows.append([torch.relu(scores)])\nfor row in rows:\n"
            "    for tile in row:\n        history.append(torch.exp(tile))"
        ),
        # over a loader, whatever it is called
        "for i, part in enumerate(loader):\n    history.append(i * 2)",
        # only views
        "rows = [row.unsqueeze(0) for row in scores]",
        # leaves early
        "for row in scores:\n    if row.sum() > 3:\n        break\n    history.append(row * 2)",
        "steps = [scores[0]]\nfor t in range(1, scores.shape[0]):\n    steps.append(torch.tanh(steps[t - 1] + scores[t]))",
        "keep = scores > 0\nfor i in range(scores.shape[0]):\n    history.append(torch.exp(targets[keep[i]]) * scores[i].sum())",
        # lists of tensors that look like one
        "for a, b in zip(model(scores).feats, model.skips):\n    history.append(torch.exp(a) + b)",
        "maps = model(scores)\nfor i in range(len(maps)):\n    history.append(maps[i] * 2)",
        "for tile in scores[level]:\n    history.append(torch.exp(tile))",
        "for head, row in zip(heads, scores):\n    history.append(torch.exp(row) * head.weight)",
        # each round trains
        "for row in scores:\n    (row * targets).sum().backward()\n    history.append(row * 2)",
        # numbers of the host
        "for i in range(len(history)):\n    total += history[i] * 2",
        "pooled = [torch.relu(level) for level in scores[:-1]]",
        # another size in each round, text, axes, and rounds that only join
        "for i in range(len(scores)):\n    history.append(scores[i] @ batch[i].weights.t())",
        "lengths = [row.index('<pad>') for row in scores]",
        "for axis in range(scores.shape[1]):\n    history.append(scores[:, axis].clamp(min=low[axis]))",
        "for i in range(len(scores)):\n    history.append(torch.cat(filtered(scores[i])))",
        "for name, parameter in model.named_parameters():\n    history.append(parameter.grad)",
    ],
)
def test_is_silent_about_loops_that_must_stay(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_a_program_of_tiny_operators_is_told_the_loop(
    traced: Callable[[str, str], Case], only: Callable[..., Finding]
) -> None:
    finding = only(CODE, traced("tiny_ops", "workload"))
    assert (finding.where.line, finding.where.function) == (18, "forward")
    assert finding.evidence["calls_per_step"] > 1000
    assert finding.cost.share > 0.5
    assert (finding.severity, finding.resource) == ("warning", "launch")


@pytest.mark.parametrize(
    ("name", "variant"), [("tiny_ops", "fixed"), ("memory_churn", "workload"), ("memory_churn", "fixed")]
)
def test_the_mended_program_and_a_recurrent_one_cost_nothing_here(
    traced: Any, findings: Callable[..., list[Finding]], name: str, variant: str
) -> None:
    assert [finding for finding in findings(CODE, traced(name, variant)) if finding.cost is not None] == []


SOURCE = """\
import torch


def step(x: torch.Tensor):
    rows = []
    for row in x:
        rows.append((row - row.mean()) / row.std())
    return torch.stack(rows)
"""


def test_a_device_trace_names_the_loop_that_leaves_it_waiting(
    builder: Any, evidence_of: Any, only: Any
) -> None:
    for i in range(2):
        start = i * 4000
        builder.annotate(f"ProfilerStep#{i}", start, 4000)
        builder.python("train.py(4): step", start, 3990)
        for k in range(150):
            at = start + 5 + 25 * k
            builder.op("aten::sub", at, 20)
            builder.launch("sub_kernel", at + 8, at + 15, 3)
    finding = only(CODE, evidence_of(builder, "train.py", SOURCE))
    assert finding.where.line == 6
    assert finding.evidence["calls_per_step"] == 150
    assert finding.cost.share > 0.5


ROWS = """
import torch


def standardise(x: torch.Tensor):
    rows = []
    for row in x:
        rows.append((row - row.mean()) / row.std())
    return torch.stack(rows)
"""
MIXED = {"operator Tensor.mean": 0.4, "python python": 0.3}
OTHER_LOOPS = ("PYR122", "PYR126")


@pytest.mark.parametrize(
    "leaves", [MIXED, {"operator Tensor.mean": 0.7}, {"operator -": 0.1, "python python": 0.6}]
)
def test_of_a_sampled_loop_over_elements_this_rule_alone_speaks(
    sampled: Callable[..., Case], findings: Callable[..., list[Finding]], leaves: dict[str, float]
) -> None:
    case = sampled(ROWS, {8: leaves}, loops={7: (400, leaves)})
    told = {code: findings(code, case) for code in (CODE, *OTHER_LOOPS)}
    assert [code for code, found in told.items() if found] == [CODE]
    assert told[CODE][0].where.line == 7


EACH = """
import torch


def act(policy: torch.nn.Module, states: torch.Tensor):
    actions = []
    for state in states:
        actions.append(policy(state.unsqueeze(0)).argmax(dim=-1))
    return torch.cat(actions)
"""


@pytest.mark.parametrize(
    ("spent", "entered", "codes"),
    [
        ({"operator policy": 0.9}, 0.0, [CODE]),
        ({"operator policy": 0.9}, 1.0, []),  # one round in each step: a loop over a batch of one
        ({"operator policy": 0.5, "backward Tensor.backward": 0.4}, 0.0, []),
    ],
)
def test_a_model_called_for_each_element_is_told_though_its_calls_are_the_steps(
    sampled: Callable[..., Case],
    findings: Callable[..., list[Finding]],
    spent: dict[str, float],
    entered: float,
    codes: list[str],
) -> None:
    case = sampled(EACH, {8: spent}, loops={7: (1, spent)})
    assert case.host is not None
    loops = [msgspec.structs.replace(loop, entered_per_step=entered) for loop in case.host.loops]
    case = msgspec.structs.replace(case, host=msgspec.structs.replace(case.host, loops=loops))
    told = [
        one for one in findings(CODE, case) if one.cost is not None
    ]  # the source alone says it without a cost
    assert [one.code for one in told] == codes
    assert all(one.advice.gain.ratio_low < 0.2 for one in told if one.advice.gain is not None)


def test_the_range_of_a_sampled_loop_is_as_narrow_as_the_samples(
    sampled: Callable[..., Case], only: Callable[..., Finding]
) -> None:
    gain = only(CODE, sampled(ROWS, {8: MIXED}, loops={7: (400, MIXED)})).advice.gain
    assert gain.ratio_low < 0.3 < gain.ratio_high < gain.ratio_low + 0.3


def test_one_round_of_a_few_stays_at_best(sampled: Callable[..., Case], only: Callable[..., Finding]) -> None:
    few = only(CODE, sampled(ROWS, {8: MIXED}, loops={7: (16, MIXED)})).advice.gain
    many = only(CODE, sampled(ROWS, {8: MIXED}, loops={7: (4000, MIXED)})).advice.gain
    assert few.ratio_low == pytest.approx(many.ratio_low + (1 - many.ratio_low) / 16, abs=0.01)


def test_all_rows_at_once_give_the_same_with_a_fraction_of_the_operators(example: Any, ops_of: Any) -> None:
    module = example("tiny_ops")
    x = torch.randn(50, 16)
    expected, before = ops_of(lambda: module.Standardise()(x))
    result, after = ops_of(lambda: module.StandardiseAll()(x))
    torch.testing.assert_close(result, expected)
    assert 50 * after.total() < 10 * before.total()
    mapped, vmapped = ops_of(lambda: torch.vmap(lambda row: (row - row.mean()) / (row.std() + 1e-6))(x))
    torch.testing.assert_close(mapped, expected)
    assert 50 * vmapped.total() < 10 * before.total()
