"""PYR130: what is given and returns the same in each step."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from pyrometer.bench.ceiling import Ceiling
from pyrometer.host.profile import HostLine, HostProfile
from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.source.module import Module

CODE = "PYR130"

TEXT = '''
import torch

def table(size):
    """Sines of positions."""
    angle = torch.arange(size).float()
    return angle.sin()
'''

CONSTANT = {
    "where": Place(file="/home/me/model.py", line=4, function="table"),
    "what": "function",
    "last_line": 7,
    "calls_per_step": 2,
    "ratio": 0.5,
    "ratio_low": 0.45,
    "ratio_high": 0.55,
    "pairs": 40,
    "same_inputs": True,
    "same_results": True,
}


def case(host: HostProfile | None = None, **changes: Any) -> Case:
    ceilings = [Ceiling(**CONSTANT | changes)]
    return Case(target="t", ceilings=ceilings, host=host, modules=(Module.parse("model.py", TEXT),))


def test_it_is_told_with_what_was_measured(only: Any) -> None:
    finding = only(CODE, case())
    assert finding.message.startswith(
        "`table` gets and returns the same values in each step, 2 times in each: without it"
    )
    gain = finding.advice.gain
    assert (gain.ratio_low, gain.ratio_high, gain.measured) == (0.45, 0.55, True)
    assert finding.links == ["/ceilings/0"]


def test_the_line_is_the_first_statement(only: Any) -> None:
    assert (only(CODE, case()).where.file, only(CODE, case()).where.line) == ("model.py", 6)


def test_the_line_is_the_one_that_takes_most_where_that_is_known(only: Any) -> None:
    lines = [
        HostLine(where=Place(file="/home/me/model.py", line=line), own_s=seconds, total_s=seconds)
        for line, seconds in [(2, 9.0), (6, 1.0), (7, 2.0)]
    ]
    host = HostProfile(steps=3, samples=30, interval_s=1e-3, step_s=12.0, lines=lines)
    assert only(CODE, case(host)).where.line == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"same_inputs": False},
        {"same_results": False},
        {"what": "loader"},
        {"ratio_high": 0.96},
    ],
)
def test_what_differs_or_costs_nothing_is_left_alone(findings: Any, changes: dict[str, Any]) -> None:
    assert findings(CODE, case(**changes)) == []


def test_the_advice_computes_once_and_gives_the_same() -> None:
    scope: dict[str, Any] = {}
    exec(compile(TEXT, "model.py", "exec"), scope)
    calls: list[int] = []
    plain = scope["table"]
    cached = functools.lru_cache(maxsize=8)(lambda size: calls.append(size) or plain(size))
    assert all(torch.equal(cached(16), plain(16)) for _ in range(3))
    assert calls == [16]
