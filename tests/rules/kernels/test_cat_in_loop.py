"""PYR511: growing a tensor, in text and in the program that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import profile

CODE = "PYR511"


@pytest.mark.parametrize(
    "body",
    [
        "out = x[:0]\nfor row in x:\n    out = torch.cat([out, row[None]])  # <-\nreturn out",
        "out = x[:0]\nfor row in x:\n    out = torch.cat((out, row[None]), dim=0)  # <-\nreturn out",
        "out = x[:0]\nwhile len(out) < 9:\n    pass\nfor row in x:\n    out = torch.hstack([row, out])  # <-\nreturn out",
        "for row in x:\n    self.seen = torch.cat([self.seen, row[None]])  # <-\nreturn self.seen",
        "out = x[:0]\nfor i in range(len(x)):\n    if i > 3:\n        y = x[i]\n    out = torch.vstack((out, x[i]))  # <-\nreturn out",
    ],
)
def test_finds_tensors_that_are_grown(fires: Any, body: str) -> None:
    fires(CODE, body)


@pytest.mark.parametrize(
    "body",
    [
        "parts = []\nfor row in x:\n    parts.append(row)\nreturn torch.cat(parts)",
        "for layer in self.layers:\n    x = torch.cat([x, layer(x)], dim=1)\nreturn x",  # reads it in each round
        "for row in x:\n    y = torch.cat([row, row])\nreturn y",
        "out = x[:0]\nfor _ in range(3):\n    out = torch.cat([out, q])\nreturn out",
        "out = x[:0]\nfor y in (q, k, v):\n    out = torch.cat([out, y])\nreturn out",
        "out = x[:0]\nfor size in self.sizes:\n    out = torch.cat([out, q[:size]])\nreturn out",
        "x = torch.cat([x, q])\nreturn x",
        "for _ in range(self.num_levels):\n    x = torch.cat([x, q])\nreturn x",
        (
            "import torch\n\ndef write(model: torch.nn.Module, ids, out, count):\n    for _ in range(count):\n"
            "        new = model(ids).argmax(-1)\n        out = torch.cat([out, new], dim=1)\n    return out\n"
        ),  # tokens beside the network that each round runs
        "for row in x:\n    out = row\n    out = torch.cat([out, q])\nreturn out",
        "while True:\n    x = torch.cat([x, self.next(x)], dim=-1)\n    if done(x):\n        return x",
    ],
)
def test_is_silent_where_nothing_is_copied_again_and_again(silent: Any, body: str) -> None:
    silent(CODE, body)


def test_what_one_loop_grows_is_one_finding(matches: Any) -> None:
    text = "import torch\ndef f(xs):\n    a = b = torch.empty(0)\n    for x in xs:\n        a = torch.cat([a, x])\n        b = torch.cat([b, -x])\n"
    (found,) = matches(CODE, text)
    assert found.message.startswith("a and b are copied whole")


def test_the_program_that_grows_its_history_is_told_the_line_and_the_price(
    example: Callable[..., Any], only: Any
) -> None:
    finding = only(CODE, example("memory_churn", "workload"))
    assert (finding.where.line, finding.where.function) == (28, "forward")
    assert finding.cost.share > 0.2
    assert finding.evidence["copies_per_step"] == 100
    assert finding.advice.gain.ratio_low < finding.advice.gain.ratio_high < 0.95
    assert "history_parts.append(state_BD[None])" in finding.advice.rewrite


def test_the_mended_program_spends_nothing_on_it(example: Callable[..., Any], findings: Any) -> None:
    assert [
        finding for finding in findings(CODE, example("memory_churn", "fixed")) if finding.cost is not None
    ] == []


def test_a_list_gives_the_same_and_copies_far_less() -> None:
    rows = torch.randn(64, 1, 256)

    def grown() -> torch.Tensor:
        out = rows[:0, 0]
        for row in rows:
            out = torch.cat([out, row])
        return out

    def joined() -> torch.Tensor:
        parts = [row for row in rows]  # noqa: C416 - as the advice writes it
        return torch.cat(parts)

    copied = []
    for make in (grown, joined):
        with profile(record_shapes=True) as seen:
            make()
        calls = [event for event in seen.events() if event.name == "aten::cat"]
        copied.append(
            sum(sum(shape[0] for shape in call.input_shapes[0] or [[64]]) for call in calls) or len(calls)
        )
    assert torch.equal(grown(), joined())
    assert copied[0] > 10 * max(copied[1] // 64, 1)
